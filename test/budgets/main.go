// Command budgets runs scenarios on the replay of Karpenter's disruption rules: one JSON object per line in, one per line out, in the
// same order. See package scenario of pkg/disruption for what is in them.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

func main() {
	if err := budgets(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func budgets(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := enc.Encode(result(line)); err != nil {
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

func result(line []byte) *scenario.Output {
	var s scenario.Scenario
	if err := json.Unmarshal(line, &s); err != nil {
		return &scenario.Output{Error: "input: " + err.Error()}
	}
	return scenario.Run(&s)
}
