package diagnose

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cadvisor"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// metrics leaves of the node what the kubelet tells of the container app and of
// its pod: periods, throttled ones, seconds of use, and quota.
func metrics(own, pod [4]float64) func(*bundle) {
	return func(b *bundle) {
		paths := map[string][4]float64{b.dir("app"): own, b.dir(podGroup): pod}
		b.forgetTree()
		b.forget("nodes/" + b.node + "/root/sys/fs/cgroup")
		var text strings.Builder
		for path, counts := range paths {
			path = "/" + strings.TrimPrefix(path, "/")
			for name, value := range map[string]float64{
				cadvisor.Periods: counts[0], cadvisor.ThrottledPeriods: counts[1], cadvisor.ThrottledSeconds: counts[1] / 100, cadvisor.UsageSeconds: counts[2],
				cadvisor.Quota: counts[3], cadvisor.Period: 100000,
			} {
				if name == cadvisor.Quota && value == 0 {
					continue
				}
				fmt.Fprintf(&text, "%s{container=\"app\",id=%q} %v 1796022413135\n", name, path, value)
			}
		}
		b.files["nodes/"+b.node+"/metrics-cadvisor.txt"] = text.String()
	}
}

func countersFamily() family {
	quota, burst, quiet := "cpu-quota-throttled@app likely", "cpu-quota-burst-throttled@app likely", "cpu-not-throttled@app likely"
	none := [4]float64{1000, 0, 1, 0}
	return family{name: "the kubelet's counters", codes: []report.Code{report.CPUQuotaThrottled, report.CPUQuotaBurstThrottled, report.CPUNotThrottled, report.CPUThrottleHistoryOnly}, cases: []ruleCase{
		{name: "use at the quota", on: throttledPod, edit: metrics([4]float64{1000, 990, 5, 5000}, none), want: []string{quota},
			text: []string{"990 of 1000 periods (99 %) since it began", "0.05 CPU", "kubelet:/metrics/cadvisor", "5000000 µs used / (1000 × 5000 µs) = 100 % of the quota"}},
		{name: "a part of the periods", on: throttledPod, edit: metrics([4]float64{1000, 100, 2, 5000}, none), want: []string{burst}, text: []string{"100 of 1000 periods (10 %)"}},
		{name: "hardly ever", on: throttledPod, edit: metrics([4]float64{1000, 9, 2, 5000}, none), want: []string{quiet}, text: []string{"9 of 1000 periods"}},
		{name: "hardly ever, but the pod's own limit is", on: throttledPod, edit: metrics([4]float64{1000, 0, 2, 5000}, [4]float64{1000, 500, 2, 5000}), want: nil},
		{name: "9 periods", on: throttledPod, edit: metrics([4]float64{9, 9, 1, 5000}, none), want: nil},
		{name: "no quota", on: throttledPod, edit: metrics([4]float64{1000, 990, 5, 0}, none), want: nil},
		{name: "another container's", on: throttledPod, edit: func(b *bundle) {
			metrics([4]float64{1000, 990, 5, 5000}, none)(b)
			b.status("app").ContainerID = "containerd://" + strings.Repeat("0", 64)
		}, want: nil},
		{name: "cgroups were read as well", on: throttledPod, edit: func(b *bundle) {
			files := map[string]string{}
			for name, text := range b.files {
				files[name] = text
			}
			metrics([4]float64{1000, 9, 2, 5000}, none)(b)
			for name, text := range files {
				b.files[name] = text
			}
		}, want: []string{"cpu-quota-throttled@app proven"}},
	}}
}
