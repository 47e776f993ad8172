package kernlog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUserKills(t *testing.T) {
	const scope = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-aa.scope"
	log := strings.Join([]string{
		"Nov 30 07:00:00 n1 kernel: systemd-oomd invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0",
		"Nov 30 07:00:01 n1 systemd-oomd[612]: Considered 12 cgroups for killing, top candidates were:",
		"Nov 30 07:00:01 n1 systemd-oomd[612]: Killed " + scope + " due to memory pressure for /kubepods.slice being 61.56% > 60.00% for > 20s with reclaim activity",
		"2026-11-30T07:00:02.000001+0000 n1 systemd[1]: cri-containerd-aa.scope: systemd-oomd killed 5 process(es) in this unit.",
		"[  100.000000] systemd-oomd[612]: Marked /a b for killing due to memory used (1) / total (2) and swap used (3) / total (4) being more than 90.00%",
		"2026-11-30T07:00:03+0000 n1 app[77]: Killed /kubepods.slice due to memory pressure said systemd-oomd[612]: Killed /x due to y",
		"2026-11-30T07:00:04+0000 n1 systemd[1]: systemd-oomd.service: Consumed 1s CPU time.",
		"2026-11-30T07:00:05+0000 n1 systemd-oomd[612]: Killed nothing due to y",
		"systemd-oomd",
		"",
	}, "\n")
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	stamp := func(s string) Stamp {
		w, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return Stamp{Wall: w.UTC(), HasWall: true}
	}
	got := UserKills([]byte(log), Boot{Wall: at, Uptime: time.Hour})
	for i := range got {
		got[i].Text = ""
		got[i].Time.Wall = got[i].Time.Wall.UTC()
	}
	want := []UserKill{
		{Time: stamp("2026-11-30T07:00:01Z"), Line: 3, Cgroup: scope, Cause: "memory pressure for /kubepods.slice being 61.56% > 60.00% for > 20s with reclaim activity"},
		{Time: stamp("2026-11-30T07:00:02.000001Z"), Line: 4, Cgroup: "cri-containerd-aa.scope"},
		{Time: Stamp{Uptime: 100 * time.Second, HasUptime: true, Wall: at.Add(-time.Hour + 100*time.Second), HasWall: true}, Line: 5, Cgroup: "/a b",
			Cause: "memory used (1) / total (2) and swap used (3) / total (4) being more than 90.00%"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzUserKills(f *testing.F) {
	f.Add([]byte("Nov 30 07:00:01 n1 systemd-oomd[612]: Killed /a due to memory pressure for /a being 1% > 0%\n"))
	f.Add([]byte("[ 1.0] systemd[1]: a.scope: systemd-oomd killed some process(es) in this unit.\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		for _, k := range UserKills(log, Boot{}) {
			if k.Cgroup == "" || k.Line < 1 || len(k.Text) > 300 {
				t.Errorf("%+v", k)
			}
		}
	})
}
