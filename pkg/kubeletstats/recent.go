package kubeletstats

import (
	"encoding/json"
	"fmt"
)

// Recent are the kubelet's own averages of a cgroup, of which one reading is
// enough. Nil is what was not told.
type Recent struct {
	// NanoCores is CPU time in a second, of the last 10 to 15 seconds.
	NanoCores *uint64
	// CPU, Memory and IO are in percent how much of the last 10 seconds some task
	// waited.
	CPU, Memory, IO *float64
}

type stats struct {
	CPU *struct {
		NanoCores *uint64   `json:"usageNanoCores"`
		PSI       *pressure `json:"psi"`
	} `json:"cpu"`
	Memory *struct {
		PSI *pressure `json:"psi"`
	} `json:"memory"`
	IO *struct {
		PSI *pressure `json:"psi"`
	} `json:"io"`
}

type pressure struct {
	Some *struct {
		Avg10 *float64 `json:"avg10"`
	} `json:"some"`
}

func (p *pressure) avg10() *float64 {
	if p == nil || p.Some == nil || p.Some.Avg10 == nil || *p.Some.Avg10 < 0 {
		return nil
	}
	return p.Some.Avg10
}

func (s stats) recent() Recent {
	var r Recent
	if s.CPU != nil {
		r.NanoCores, r.CPU = s.CPU.NanoCores, s.CPU.PSI.avg10()
	}
	if s.Memory != nil {
		r.Memory = s.Memory.PSI.avg10()
	}
	if s.IO != nil {
		r.IO = s.IO.PSI.avg10()
	}
	return r
}

// ReadRecent reads the answer of /stats/summary.
func ReadRecent(data []byte) (map[Cgroup]Recent, error) {
	var summary struct {
		Node stats `json:"node"`
		Pods []struct {
			Ref struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"podRef"`
			stats
			Containers []struct {
				Name string `json:"name"`
				stats
			} `json:"containers"`
		} `json:"pods"`
	}
	if err := json.Unmarshal(data, &summary); err != nil {
		return nil, fmt.Errorf("stats/summary: %w", err)
	}
	out := map[Cgroup]Recent{{}: summary.Node.recent()}
	for _, p := range summary.Pods {
		at := Cgroup{p.Ref.Namespace, p.Ref.Name, ""}
		out[at] = p.recent()
		for _, c := range p.Containers {
			at.Container = c.Name
			out[at] = c.recent()
		}
	}
	return out, nil
}
