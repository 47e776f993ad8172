// Package conformance compares the replay of the kubelet's resource managers with the kubelet's own, on random scenarios. What hangs on
// the kubelet's version is in the modules beside this one, each of which builds with its own release of Kubernetes.
package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

var (
	seed    = flag.Uint64("seed", 0, "seed; 0 takes one from the clock")
	count   = flag.Int("n", 20000, "number of scenarios")
	profile = flag.String("profile", "", "one profile only")
	limit   = flag.Duration("timeout", 2*time.Minute, "when a scenario counts as hanging")
	expect  = flag.Duration("hang", 5*time.Second, "the same, where the replay says that it hangs")
	record  = flag.String("record", "", "write the scenarios and the kubelet's results, shortened, to this file, compressed")
	one     = flag.Bool("one", false, "run the one scenario of the standard input on the kubelet's code, and print the result")
	timed   = flag.Bool("bench", false, "compare the times of admissions instead")
	rounds  = flag.Int("rounds", 10, "of each comparison of times")
)

// Main is a command that ends with status 1 if there is any difference.
func Main(k *Kubelet) {
	flag.Parse()
	err := k.compare
	switch {
	case *one:
		err = k.runOne
	case *timed:
		err = k.bench
	}
	if err := err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (k *Kubelet) runOne() error {
	var s scenario.Scenario
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(k.Run(&s))
}

// within runs a scenario in this process, or in one of its own where it is to hang: what hangs cannot be stopped otherwise.
func (k *Kubelet) within(s *scenario.Scenario, hangs bool) (scenario.Output, error) {
	timeout := scenario.Output{ID: s.ID, Error: "timeout"}
	if !hangs {
		done := make(chan scenario.Output, 1)
		go func() { done <- k.Run(s) }()
		select {
		case out := <-done:
			return out, nil
		case <-time.After(*limit):
			return timeout, fmt.Errorf("%s hangs, and the replay does not", s.ID)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return timeout, err
	}
	line, err := json.Marshal(s)
	if err != nil {
		return timeout, err
	}
	cmd := exec.Command(self, "-one")
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(line), &stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return timeout, err
	}
	timer := time.AfterFunc(*expect, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if cmd.Wait() != nil {
		return timeout, nil
	}
	var out scenario.Output
	return out, json.Unmarshal(stdout.Bytes(), &out)
}

// recorded is one line of a recording.
type recorded struct {
	In  scenario.Scenario `json:"in"`
	Out scenario.Output   `json:"out"`
}

func (k *Kubelet) compare() error {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	profiles := scenario.Profiles()
	if *profile != "" {
		profiles = []string{*profile}
	}
	fmt.Printf("kubelet %s, seed %d, %d scenarios\n", k.Version, *seed, *count)
	enc, closeRecord, err := recorder()
	if err != nil {
		return err
	}
	differ, byChance, steps := 0, 0, 0
	for i := range *count {
		s := scenario.Generate(k.Version, *seed, i/len(profiles), profiles[i%len(profiles)])
		replayed := scenario.Run(&s)
		want, err := k.within(&s, replayed.Error == "timeout")
		if err != nil {
			return err
		}
		if enc != nil {
			if err := enc.Encode(recorded{s, want.Shortened()}); err != nil {
				return err
			}
		}
		steps += len(want.Steps)
		possible := replayed.Possible(want)
		switch at := slices.IndexFunc(possible, func(o scenario.Output) bool { return cmp.Equal(want, o) }); {
		case at == 0:
		case at > 0:
			byChance++
		default:
			differ++
			if differ <= 10 {
				fmt.Printf("%s (-kubelet +replay):\n%s\n", s.ID, cmp.Diff(want, possible[0]))
			}
		}
	}
	if err := closeRecord(); err != nil {
		return err
	}
	fmt.Printf("%d scenarios with %d steps: %d differ; in %d the kubelet took another of the possible outcomes that the replay names\n",
		*count, steps, differ, byChance)
	if differ > 0 {
		return fmt.Errorf("differences; to repeat: -seed %d", *seed)
	}
	return nil
}

func recorder() (*json.Encoder, func() error, error) {
	if *record == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.Create(*record)
	if err != nil {
		return nil, nil, err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	closing := func() error {
		for _, c := range []io.Closer{z, f} {
			if err := c.Close(); err != nil {
				return err
			}
		}
		return nil
	}
	return json.NewEncoder(z), closing, nil
}
