// Command replay runs scenarios on the replay of the kubelet's resource managers: one JSON object per line in, one per line out, in the
// same order. See package scenario for what is in them. With -generate it prints random scenarios instead.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

func main() {
	n := flag.Int("generate", 0, "print so many random scenarios")
	version := flag.String("version", "1.37", "kubelet version of the random scenarios")
	seed := flag.Uint64("seed", 1, "seed of the random scenarios")
	profile := flag.String("profile", "mixed", "their profile: "+strings.Join(scenario.Profiles(), ", "))
	flag.Parse()
	var err error
	if *n > 0 {
		err = generate(os.Stdout, *version, *seed, *n, *profile)
	} else {
		err = replay(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(out io.Writer, version string, seed uint64, n int, profile string) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	for i := range n {
		if err := enc.Encode(scenario.Generate(version, seed, i, profile)); err != nil {
			return err
		}
	}
	return w.Flush()
}

func replay(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var s scenario.Scenario
			var result scenario.Output
			if err := json.Unmarshal(line, &s); err != nil {
				result.Error = "input: " + err.Error()
			} else {
				result = scenario.Run(&s)
			}
			if err := enc.Encode(result); err != nil {
				return err
			}
		}
		switch readErr {
		case nil:
		case io.EOF:
			return w.Flush()
		default:
			return readErr
		}
	}
}
