package diagnose

import (
	"io/fs"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
)

// readStats reads the kubelet's /stats/summary. Without it the signals of memory
// are computed from the node's files.
func (n *nodeCase) readStats() (eviction.Summary, error) {
	data, err := n.files.File("stats-summary.json")
	if err != nil {
		return eviction.Summary{}, err
	}
	s, err := eviction.ParseSummary(data)
	n.gaps.Miss("nodes/"+n.name+"/stats-summary.json", err, "the signals of eviction as the kubelet measures them", "get nodes/proxy (kubelet /stats/summary)")
	return s, err
}

// oneLine is a file of the node of one short line, without the newline.
func (n *nodeCase) oneLine(path string) (string, bool) {
	data, err := fs.ReadFile(n.fsys, path)
	text := strings.TrimRight(string(data), "\n")
	const most = 200
	return text, err == nil && text != "" && len(text) <= most && !strings.Contains(text, "\n")
}
