package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const preferUncore = "prefer-align-cpus-by-uncorecache"

// uncoreCacheSplit says that a container's own CPUs lie under more last level
// caches than so many CPUs need.
func uncoreCacheSplit(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil || !slices.ContainsFunc(topo.CPUs, func(cpu topology.CPU) bool { return cpu.HasUncoreCache }) {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		var parts []string
		touched, least := 0, 0
		for _, n := range numaNodesWith(topo, k.cpus) {
			t, l, here := cachesOf(topo, n.CPUs, k.cpus)
			touched, least, parts = touched+t, least+l, append(parts, here...)
		}
		if touched <= least {
			continue
		}
		f := report.NewFinding(report.UncoreCacheSplit, report.Proven, c.subject(k.Name), fmt.Sprintf(
			"The %d CPUs of container %s lie under %d last level caches where %d could hold them: %s.", k.cpus.Size(), k.Name, touched, least, join(parts)),
			c.ownershipEvidence(k.Name)...)
		source := "node:lscpu -p"
		if topo.Source == topology.Sysfs {
			first, _ := k.cpus.First()
			source = c.source(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache", first))
		}
		f.Because = append(f.Because, report.Evidence{Source: source, Field: "last level caches", Value: join(parts), Means: "the container's CPUs of each cache's"})
		if c.configErr == nil && c.config.CPUManagerPolicy == "static" {
			value, set := c.config.CPUManagerPolicyOptions[preferUncore]
			if !set {
				value = "not set"
			}
			f.Because = append(f.Because, c.configEvidence("cpuManagerPolicyOptions["+preferUncore+"]", value, "would prefer CPUs under one cache"))
			if value != "true" && c.config.CPUManagerPolicyOptions["distribute-cpus-across-numa"] != "true" && c.config.CPUManagerPolicyOptions["distribute-cpus-across-cores"] != "true" {
				f.Remedies = []report.Remedy{{
					Summary: "Set the CPU Manager's option " + preferUncore + "=true.",
					Effect:  "Pods admitted afterwards get whole caches first; it is a preference, no promise.",
				}}
			}
		}
		out = append(out, f)
	}
	return out
}

// cachesOf counts the caches that a set touches on a NUMA node, and the fewest
// there with room for as many CPUs.
func cachesOf(topo *topology.Topology, node, set cpuset.Set) (touched, least int, parts []string) {
	var sizes []int
	for _, u := range topo.UncoreCaches {
		there := u.CPUs.Intersection(node)
		if there.IsEmpty() {
			continue
		}
		sizes = append(sizes, there.Size())
		if here := there.Intersection(set); !here.IsEmpty() {
			touched++
			parts = append(parts, fmt.Sprintf("%s of %s", here, u.CPUs))
		}
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	for room := 0; least < len(sizes) && room < set.Intersection(node).Size(); least++ {
		room += sizes[least]
	}
	return touched, least, parts
}
