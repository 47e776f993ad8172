// Command karpenter compares the replay of Karpenter's disruption with the real code of v1.14.1 on random scenarios. It prints the
// seed, and for each scenario on which the two differ the scenario and where; the exit status is 1 if there are any.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

func main() {
	n := flag.Int("n", 20000, "number of random scenarios")
	seed := flag.Int64("seed", 0, "seed of the random scenarios; 0 takes one from the clock")
	record := flag.Bool("record", false, "print each scenario with the real code's result instead of comparing")
	timed := flag.Bool("bench", false, "time the evaluation of budgets against the real code's")
	stdin := flag.Bool("stdin", false, "take scenarios from standard input, one for each line, instead of random ones")
	places := flag.Bool("placement", false, "compare instead where pods could go: what is proven and planned against the real simulation, on random clusters")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	if *timed {
		if err := bench(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if *seed == 0 {
		*seed = time.Now().UnixNano()
	}
	if *places {
		fmt.Printf("seed %d\n", *seed)
		failed, err := comparePlaces(*seed, *n, os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if err != nil || failed {
			os.Exit(1)
		}
		return
	}
	crd, err := nodePoolCRD()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	next := fromSeed(*seed, *n)
	if *stdin {
		next = fromLines(os.Stdin)
	} else if !*record {
		fmt.Printf("seed %d\n", *seed)
	}
	out := bufio.NewWriter(os.Stdout)
	failed, err := run(crd, next, *record, out)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if failed {
		os.Exit(1)
	}
}

// pair is a scenario with the real code's result.
type pair struct {
	Scenario *scenario.Scenario `json:"scenario"`
	Result   *scenario.Output   `json:"result"`
}

func run(crd *crd, next func() (*scenario.Scenario, error), record bool, out io.Writer) (failed bool, err error) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	total, refused, differ := 0, 0, 0
	for {
		s, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
		result := runReal(crd, s)
		if record {
			if err := enc.Encode(pair{s, result}); err != nil {
				return false, err
			}
			continue
		}
		total++
		if result.Error != "" {
			refused++
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.ID, err)
		}
		differences, err := scenario.Differences(scenario.Run(s), encoded)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.ID, err)
		}
		if len(differences) > 0 {
			differ++
			text, _ := json.Marshal(s)
			fmt.Fprintf(out, "%s\n", text)
			for _, d := range differences {
				fmt.Fprintf(out, "  %s\n", d)
			}
		}
	}
	if !record {
		fmt.Fprintf(out, "%d scenarios, %d of them refused by both, %d differ\n", total, refused, differ)
	}
	return differ > 0, nil
}

func fromSeed(seed int64, n int) func() (*scenario.Scenario, error) {
	r := newRandom(seed)
	i := 0
	return func() (*scenario.Scenario, error) {
		if i == n {
			return nil, io.EOF
		}
		s := r.scenario()
		s.ID = fmt.Sprintf("%d-%d", seed, i)
		i++
		return s, nil
	}
}

func fromLines(in io.Reader) func() (*scenario.Scenario, error) {
	lines := bufio.NewReader(in)
	return func() (*scenario.Scenario, error) {
		for {
			line, err := lines.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 {
				s := &scenario.Scenario{}
				return s, json.Unmarshal(line, s)
			}
			if err != nil {
				return nil, err
			}
		}
	}
}
