// Command kubelet compares the replay of the kubelet's resource managers with the kubelet's own, on random scenarios. It ends with
// status 1 if there is any difference.
package main

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

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

var (
	seed    = flag.Uint64("seed", 0, "seed; 0 takes one from the clock")
	count   = flag.Int("n", 20000, "number of scenarios")
	profile = flag.String("profile", "", "one profile only")
	limit   = flag.Duration("timeout", 2*time.Minute, "when a scenario counts as hanging")
	expect  = flag.Duration("hang", 5*time.Second, "the same, where the replay says that it hangs")
	record  = flag.String("record", "", "write the scenarios and the kubelet's results to this file, compressed")
	one     = flag.Bool("one", false, "run the one scenario of the standard input on the kubelet's code, and print the result")
)

func main() {
	flag.Parse()
	// Nothing of the kubelet's log, and no flags of its own: it has one line for each hint.
	klog.SetLogger(logr.Discard())
	var err error
	if *one {
		err = runOne()
	} else {
		err = compare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runOne() error {
	var s scenario.Scenario
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(real(&s))
}

// real runs a scenario on the kubelet's code.
func real(s *scenario.Scenario) (out scenario.Output) {
	out.ID = s.ID
	folder, err := os.MkdirTemp(memoryFolder(), "managers")
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer os.RemoveAll(folder)
	reset, err := setGates(s.Kubelet.FeatureGates)
	defer reset()
	if err != nil {
		out.Setup = scenario.SetupResult{Stage: "gates", Error: err.Error()}
		return out
	}
	defer func() {
		if p := recover(); p != nil {
			out.Error = fmt.Sprintf("panic: %v", p)
		}
	}()
	m := &managers{folder: folder, machine: s.Topology, config: s.Kubelet, specs: map[types.UID]*scenario.Pod{}}
	if out.Setup, err = m.start(); err != nil {
		out.Error = err.Error()
	}
	for i := range s.Steps {
		if err != nil || !out.Setup.OK {
			break
		}
		var step scenario.StepResult
		if step, err = m.step(&s.Steps[i]); err != nil {
			out.Error = err.Error()
			break
		}
		out.Steps = append(out.Steps, step)
		if step.Restart != nil && !step.Restart.OK {
			break
		}
	}
	return out
}

// memoryFolder is where state files are written fastest; "" for the system's choice.
func memoryFolder() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// within runs a scenario in this process, or in one of its own where it is to hang: what hangs cannot be stopped otherwise.
func within(s *scenario.Scenario, hangs bool) (scenario.Output, error) {
	timeout := scenario.Output{ID: s.ID, Error: "timeout"}
	if !hangs {
		done := make(chan scenario.Output, 1)
		go func() { done <- real(s) }()
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

func compare() error {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	profiles := scenario.Profiles()
	if *profile != "" {
		profiles = []string{*profile}
	}
	fmt.Printf("seed %d, %d scenarios\n", *seed, *count)
	enc, closeRecord, err := recorder()
	if err != nil {
		return err
	}
	differ, byChance, steps := 0, 0, 0
	for i := range *count {
		s := scenario.Generate(*seed, i/len(profiles), profiles[i%len(profiles)])
		replayed := scenario.Run(&s)
		want, err := within(&s, replayed.Error == "timeout")
		if err != nil {
			return err
		}
		if enc != nil {
			if err := enc.Encode(recorded{s, want}); err != nil {
				return err
			}
		}
		steps += len(want.Steps)
		others := replayed.Alternatives
		replayed.Alternatives = nil
		diff := cmp.Diff(want, replayed)
		switch {
		case diff == "":
		case slices.ContainsFunc(others, func(o scenario.Output) bool { return cmp.Equal(want, o) }):
			byChance++
		default:
			differ++
			if differ <= 10 {
				fmt.Printf("%s (-kubelet +replay):\n%s\n", s.ID, diff)
			}
		}
	}
	if err := closeRecord(); err != nil {
		return err
	}
	fmt.Printf("%d scenarios with %d steps: %d differ; in %d the kubelet took another of the possible outcomes that the replay names\n", *count, steps, differ, byChance)
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
