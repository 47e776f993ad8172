package reader

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds of one stream. A node with 500 pods fills a tenth of them.
const (
	maxFiles     = 150_000
	maxTotal     = 256 << 20
	maxFileBytes = 16 << 20
	maxMessage   = 4 << 10
	maxLine      = 4096 + 32 // a path, and what is before it
)

// KernelLog is the name of the kernel log among the files.
const KernelLog = "kernel.log"

// Reading is what a stream told before it ended.
type Reading struct {
	Once    []File
	Samples []Sample
	Failed  []Failure
}

// File is one that was read whole. Path is the node's own, without the slash
// that it begins with, or KernelLog.
type File struct {
	Path string
	Data []byte
}

// Sample is what was read for one moment.
type Sample struct {
	Files []File
	// Begin and End are the clock before the first counter and after the last;
	// End is zero where the stream ended in between.
	Begin, End Clock
	// Whole says that all of it has arrived.
	Whole bool
}

// Clock is one moment on the node and here.
type Clock struct {
	Node   time.Time
	Uptime time.Duration
	// HasUptime is false where the node did not tell it.
	HasUptime bool
	Received  time.Time
}

// Failure is a file that is there and could not be read.
type Failure struct {
	Sample  int // -1: what is read once
	Path    string
	Message string
}

var (
	errEnd   = errors.New("the stream ended early")
	errLimit = errors.New("the node has more files than a reading may hold")
)

// Read takes a stream apart until its end. The error says why there is not all
// that the script would have written; what arrived complete is there all the
// same. Now is the clock of this end.
func Read(r io.Reader, now func() time.Time) (Reading, error) {
	s := &stream{r: bufio.NewReaderSize(r, 64<<10), now: now, section: none, seen: map[string]bool{}}
	err := s.read()
	return s.out, err
}

// Sections of a stream other than the samples, which are 0 and 1.
const (
	none = -2
	once = -1
)

type stream struct {
	r       *bufio.Reader
	now     func() time.Time
	out     Reading
	section int
	seen    map[string]bool // files of the section
	files   int
	total   int
}

func (s *stream) read() error {
	line, err := s.line()
	if err != nil {
		return err
	}
	if line != "noderes 1" {
		return damaged("it begins with %s", line)
	}
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "S":
			err = s.begin(rest)
		case "T":
			err = s.clock(rest)
		case "F", "E":
			err = s.file(kind, rest)
		case "Z":
			return s.complete()
		default:
			err = damaged("%s is no frame", line)
		}
		if err != nil {
			return err
		}
	}
}

// line is one without its newline.
func (s *stream) line() (string, error) {
	var b []byte
	for {
		part, err := s.r.ReadSlice('\n')
		if b = append(b, part...); len(b) > maxLine {
			return "", damaged("a line of more than %d bytes: %s", maxLine, string(b[:80]))
		}
		switch {
		case err == nil:
			return string(b[:len(b)-1]), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", errEnd
		default:
			return "", fmt.Errorf("%w: %w", errEnd, err)
		}
	}
}

func (s *stream) begin(section string) error {
	if err := s.close(); err != nil {
		return err
	}
	switch {
	case section == "once" && s.section != none && s.out.Once == nil:
		s.section, s.out.Once = once, []File{}
	case section == strconv.Itoa(len(s.out.Samples)) && len(s.out.Samples) < 2:
		s.section = len(s.out.Samples)
		s.out.Samples = append(s.out.Samples, Sample{})
	default:
		return damaged("section %s out of turn", section)
	}
	clear(s.seen)
	return nil
}

// clock reads "EPOCH[.FRACTION] UPTIME"; the uptime is "-" where it is not known.
func (s *stream) clock(text string) error {
	if s.section < 0 {
		return damaged("a clock outside of a sample")
	}
	epoch, uptime, _ := strings.Cut(text, " ")
	c := Clock{Received: s.now()}
	at, ok := seconds(epoch)
	if !ok {
		return damaged("%s is no time", text)
	}
	c.Node = time.Unix(0, int64(at)).UTC()
	c.Uptime, c.HasUptime = seconds(uptime)
	switch sample := &s.out.Samples[s.section]; {
	case sample.Begin.Received.IsZero():
		sample.Begin = c
	case sample.End.Received.IsZero():
		sample.End = c
	default:
		return damaged("a sample with more than two clocks")
	}
	return nil
}

var secondsPattern = regexp.MustCompile(`^[0-9]{1,10}(\.[0-9]{1,9})?$`)

// seconds reads digits and a fraction, without a float's rounding: some 300
// years at most, which a duration holds.
func seconds(text string) (time.Duration, bool) {
	if !secondsPattern.MatchString(text) {
		return 0, false
	}
	d, err := time.ParseDuration(text + "s")
	return d, err == nil
}

func (s *stream) file(kind, announced string) error {
	length, path, _ := strings.Cut(announced, " ")
	n, err := strconv.ParseUint(length, 10, 31)
	if err != nil {
		return damaged("%s is no length", length)
	}
	path, ok := wanted(path)
	switch {
	case s.section == none:
		return damaged("a file before the first section")
	case !ok:
		return damaged("a file that was not asked for: %s", path)
	case s.seen[path]:
		return damaged("%s twice", path)
	case kind == "F" && n > maxFileBytes, kind == "E" && n > maxMessage:
		return damaged("%s of %d bytes", path, n)
	}
	s.seen[path] = true
	if s.files++; s.files > maxFiles {
		return errLimit
	}
	if s.total += int(n); s.total > maxTotal {
		return errLimit
	}
	data, err := s.content(int(n))
	if err != nil {
		return err
	}
	switch {
	case kind == "E":
		s.fail(path, string(data))
	case s.section == once:
		s.out.Once = append(s.out.Once, File{path, data})
	default:
		sample := &s.out.Samples[s.section]
		sample.Files = append(sample.Files, File{path, data})
	}
	return nil
}

// content reads what a frame announced and the newline after it. Memory is taken
// for what has arrived, not for what was announced.
func (s *stream) content(n int) ([]byte, error) {
	const step = 64 << 10
	data := make([]byte, 0, min(n, step))
	for len(data) < n {
		k := min(n-len(data), step)
		at := len(data)
		data = append(data, make([]byte, k)...)
		if _, err := io.ReadFull(s.r, data[at:]); err != nil {
			return nil, errEnd
		}
	}
	end, err := s.r.ReadByte()
	switch {
	case err != nil:
		return nil, errEnd
	case end != '\n':
		return nil, damaged("a file that is longer than was announced")
	}
	return data, nil
}

// fail notes what could not be read. A file that vanished while it was read is
// as good as one that never was.
func (s *stream) fail(path, message string) {
	message = strings.TrimSpace(message)
	if strings.HasSuffix(message, "No such file or directory") || strings.HasSuffix(message, "No such device") ||
		strings.HasSuffix(message, "No such process") {
		return
	}
	s.out.Failed = append(s.out.Failed, Failure{s.section, path, message})
}

// close ends a section.
func (s *stream) close() error {
	if s.section < 0 {
		return nil
	}
	sample := &s.out.Samples[s.section]
	if sample.End.Received.IsZero() {
		return damaged("a sample without an end")
	}
	sample.Whole = true
	return nil
}

func (s *stream) complete() error {
	if len(s.out.Samples) == 0 {
		return damaged("no sample")
	}
	return s.close()
}

// roots are the folders that the script reads from.
var roots = []string{"sys/fs/cgroup/", "sys/devices/system/cpu/", "sys/devices/system/node/", "sys/kernel/mm/"}

var wantedPattern = regexp.MustCompile(
	`^(proc/(stat|meminfo|loadavg|uptime|vmstat|cgroups|cmdline|cpuinfo|swaps|version|pressure/[a-z]+|sys/(kernel|vm)/[a-z_-]+)` +
		`|proc/[0-9]+/(cgroup|oom_score|oom_score_adj|schedstat|status)|proc/self/cgroup` +
		`|var/lib/kubelet/(cpu|memory)_manager_state|` + regexp.QuoteMeta(KernelLog) + `)$`)

// wanted says whether the script reads a file, and gives its path in a tree.
func wanted(path string) (string, bool) {
	name := path
	if path != KernelLog {
		var absolute bool
		if name, absolute = strings.CutPrefix(path, "/"); !absolute {
			return path, false
		}
	}
	if !fs.ValidPath(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return path, false
	}
	for _, root := range roots {
		if strings.HasPrefix(name, root) {
			return name, true
		}
	}
	return name, wantedPattern.MatchString(name)
}

// damaged is a stream that the script did not write.
func damaged(format string, args ...any) error {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = strconv.Quote(text[:min(len(text), 100)])
		}
	}
	return fmt.Errorf("the stream is not what the reader writes: "+format, args...)
}
