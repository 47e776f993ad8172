package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/term"
	"github.com/spf13/cobra"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/render"
)

// watchOptions say how often a cluster is read for a table.
type watchOptions struct {
	on       bool
	interval time.Duration
	count    int
	maxNodes int
}

const (
	defaultInterval = 10 * time.Second // as often as a kubelet reads its counters
	leastInterval   = time.Second
	defaultMaxNodes = 50
)

func (o *watchOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.BoolVarP(&o.on, "watch", "w", false, "Read the cluster again and again; Ctrl-C ends it")
	flags.DurationVar(&o.interval, "interval", defaultInterval, "With --watch: time from one reading to the next; a kubelet has new ones every 10 to 15 seconds")
	flags.IntVar(&o.count, "count", 0, "With --watch: end after as many readings; 0 is never")
	flags.IntVar(&o.maxNodes, "max-nodes", defaultMaxNodes, "How many kubelets of a cluster are asked")
	for _, name := range []string{"interval", "count", "max-nodes"} {
		mustRegister(cmd, name, cobra.NoFileCompletions)
	}
}

func (o *watchOptions) validate(from string) error {
	switch {
	case o.on && from != "":
		return errors.New("--watch is for a cluster: a bundle does not change")
	case !o.on && (o.interval != defaultInterval || o.count != 0):
		return errors.New("--interval and --count are for --watch")
	case o.interval < leastInterval:
		return fmt.Errorf("--interval=%s is less than %s", o.interval, leastInterval)
	case o.count < 0:
		return fmt.Errorf("--count=%d is no number of readings", o.count)
	case o.maxNodes < 1:
		return fmt.Errorf("--max-nodes=%d leaves none to ask", o.maxNodes)
	}
	return nil
}

// source is what is read again and again.
type source func(context.Context) (collect.TopReading, error)

// live shows a table of the cluster: once, or until it is told to end.
func (o *topOptions) live(ctx context.Context, q question) error {
	if o.cluster.timeout <= 0 {
		return fmt.Errorf("--timeout=%s is no time to read in", o.cluster.timeout)
	}
	client, err := o.cluster.client()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	q.want.MostNodes, q.want.Tool = o.watch.maxNodes, "kubectl-noderes "+versionInfo().Version
	top := collect.NewTop(client, q.want)
	q.of.Node = "" // no others are read
	read := func(ctx context.Context) (collect.TopReading, error) {
		ctx, cancel := context.WithTimeout(ctx, o.cluster.timeout)
		defer cancel()
		return top.Read(ctx, time.Now())
	}
	if o.watch.on {
		return o.watchSource(ctx, q, read, time.After)
	}
	reading, err := read(ctx)
	if err != nil {
		return err
	}
	notes, err := q.without(reading)
	for _, note := range notes {
		fmt.Fprintln(o.ErrOut, "warning: "+render.Escape(note))
	}
	if err != nil && len(q.of.Names) == 0 && len(reading.Failed) > 0 {
		return err
	}
	return errors.Join(o.show(reading.Snapshot, q), err)
}

// without takes names that failed out of the question. The notes are what else
// the reading lacks.
func (q *question) without(reading collect.TopReading) (notes []string, err error) {
	var errs []error
	var names []string
	for _, name := range q.of.Names {
		if failed := reading.Failed[name]; failed != nil {
			if !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == failed.Error() }) {
				errs = append(errs, failed)
			}
			continue
		}
		names = append(names, name)
	}
	q.of.Names = names
	if gaps := collect.KubeletGaps(reading.Snapshot); gaps != "" {
		notes = append(notes, gaps)
	}
	if reading.NodesLeft > 0 {
		notes = append(notes, fmt.Sprintf("%d more nodes are not asked and not shown, see --max-nodes", reading.NodesLeft))
	}
	return notes, errors.Join(errs...)
}

// watchSource shows one table after the other. A reading that fails is a line, not
// an end; only if all of a --count fail it is an error.
func (o *topOptions) watchSource(ctx context.Context, q question, read source, after func(time.Duration) <-chan time.Time) error {
	display := newDisplay(o)
	defer display.end()
	var earlier diagnose.Usage
	var last error
	shown := false
	for n := 1; ; n++ {
		begin := time.Now()
		reading, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			earlier = diagnose.ReadUsage(reading.Snapshot, earlier)
			err = o.tick(display, q, reading, earlier, !shown)
			if errors.As(err, new(*writeError)) {
				return err
			}
			shown = shown || err == nil
		}
		if last = err; err != nil {
			if err := display.fail(fmt.Sprintf("%s: no reading: %s", begin.UTC().Format(time.RFC3339), err)); err != nil {
				return err
			}
		}
		if n == o.watch.count {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-after(o.watch.interval - time.Since(begin)):
		}
	}
	if !shown {
		return last
	}
	return nil
}

// tick shows the table of one reading.
func (o *topOptions) tick(d *display, q question, reading collect.TopReading, use diagnose.Usage, first bool) error {
	asked := len(q.of.Names)
	notes, err := q.without(reading)
	if err != nil {
		if len(q.of.Names) == 0 && asked > 0 {
			return err
		}
		notes = append(notes, err.Error())
	}
	q.of.Usage = use
	top, err := q.table(reading.Snapshot, q.of)
	rows := len(top.Pods) + len(top.Nodes)
	if err != nil && rows == 0 {
		return err
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	heading := top.ObservedAt.UTC().Format(time.RFC3339)
	if first {
		heading += fmt.Sprintf("  the first reading: rates need two, the next is in %s", o.watch.interval)
	}
	if rows == 0 {
		notes = append(notes, "No resources found.")
	}
	var text bytes.Buffer
	err = o.document(&text, top, func(w io.Writer) error { return render.Top(w, top, !o.noHeaders, o.style(o.Out)) })
	if err != nil {
		return &writeError{err}
	}
	return d.show(heading, notes, text.String())
}

// writeError is one of showing, not of reading.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// display shows tables: on a terminal each in place of the one before, else one
// after the other.
type display struct {
	*topOptions
	text bool
	// height is that of the terminal in lines, which its user may change; 0 without
	// one.
	height func() int
	shown  int
	last   []string // of a terminal: the table that stands there
}

func newDisplay(o *topOptions) *display {
	return &display{topOptions: o, text: o.output == formatText, height: func() int { return terminalHeight(o.Out) }}
}

func (d *display) onTerminal() bool { return d.text && d.height() > 0 }

func (d *display) show(heading string, notes []string, table string) error {
	if d.onTerminal() {
		lines := []string{heading}
		for _, note := range notes {
			lines = append(lines, render.Escape(note))
		}
		d.last = strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		return d.draw(lines)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(d.ErrOut, "warning: "+render.Escape(note)); err != nil {
			return &writeError{err}
		}
	}
	switch {
	case d.text && !d.noHeaders:
		table = heading + "\n" + table
		if d.shown > 0 {
			table = "\n" + table
		}
	case strings.HasPrefix(d.output, formatYAML) && d.shown > 0:
		table = "---\n" + table
	}
	d.shown++
	if _, err := io.WriteString(d.Out, table); err != nil {
		return &writeError{err}
	}
	return nil
}

// fail tells of a reading that failed. On a terminal the last table stays.
func (d *display) fail(text string) error {
	text = render.Escape(text)
	if d.onTerminal() {
		return d.draw([]string{text})
	}
	if _, err := fmt.Fprintln(d.ErrOut, text); err != nil {
		return &writeError{err}
	}
	return nil
}

const (
	home     = "\x1b[H"
	clearEnd = "\x1b[K" // of the line
	clearAll = "\x1b[J" // below
	wrapOff  = "\x1b[?7l"
	wrapOn   = "\x1b[?7h"
)

// draw writes lines over what stands there, as many as there is room for.
func (d *display) draw(heading []string) error {
	lines := append(slices.Clone(heading), d.last...)
	if room := d.height() - 1; len(lines) > room && room > 0 {
		left := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("%d more lines", left))
	}
	var b strings.Builder
	if d.shown++; d.shown == 1 {
		b.WriteString(wrapOff)
	}
	b.WriteString(home)
	for _, line := range lines {
		b.WriteString(line + clearEnd + "\r\n")
	}
	b.WriteString(clearAll)
	if _, err := io.WriteString(d.Out, b.String()); err != nil {
		return &writeError{err}
	}
	return nil
}

// end leaves the terminal as it was.
func (d *display) end() {
	if d.onTerminal() && d.shown > 0 {
		_, _ = io.WriteString(d.Out, wrapOn)
	}
}

// terminalHeight is in lines, 0 where w is no terminal.
func terminalHeight(w io.Writer) int {
	fd, isTerminal := term.GetFdInfo(w)
	if !isTerminal {
		return 0
	}
	size, err := term.GetWinsize(fd)
	if err != nil {
		return 0
	}
	return int(size.Height)
}
