package shrink

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// data counts, for each code, worlds that give it and worlds of the same table
// in which it is silent.
var data struct {
	sync.Mutex
	gives, silent map[report.Code]int
}

// noteData notes which of a table's codes one of its worlds gave.
func noteData(t *testing.T, found []report.Finding, codes ...report.Code) {
	if t.Failed() {
		return
	}
	data.Lock()
	defer data.Unlock()
	if data.gives == nil {
		data.gives, data.silent = map[report.Code]int{}, map[report.Code]int{}
	}
	for _, code := range codes {
		if slices.ContainsFunc(found, func(f report.Finding) bool { return f.Code == code }) {
			data.gives[code]++
		} else {
			data.silent[code]++
		}
	}
}

// lacking are the codes of the group without data that give them, or without a
// neighbour.
func lacking() []string {
	var out []string
	for _, entry := range report.Catalogue() {
		if entry.Group != report.GroupShrinking {
			continue
		}
		if data.gives[entry.Code] == 0 {
			out = append(out, fmt.Sprintf("%s: no data that give it", entry.Code))
		}
		if data.silent[entry.Code] == 0 {
			out = append(out, fmt.Sprintf("%s: no data in which it is silent", entry.Code))
		}
	}
	return out
}

// Every code of the group has data of its own, and a neighbour in which it is
// silent: what the tables of a whole run noted.
func TestMain(m *testing.M) {
	flag.Parse()
	part := false
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		f := flag.Lookup(name)
		part = part || f != nil && f.Value.String() != ""
	}
	status := m.Run()
	if missing := lacking(); status == 0 && !part && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: tables call noteData for each world:\n\t%s\n", strings.Join(missing, "\n\t"))
		status = 1
	}
	os.Exit(status)
}
