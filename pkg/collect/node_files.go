package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// readWhole are the folders of which all is read that a finding looks at: what is
// not there did not exist.
var readWhole = []string{"sys/devices/system/cpu", "sys/devices/system/node", "sys/kernel/mm", "proc/pressure", "proc/sys/kernel", "proc/sys/vm"}

// signs are files that every node has, and what is not to be seen without them.
var signs = []struct{ file, folder string }{
	{"sys/devices/system/cpu/online", "sys/devices/system/cpu"},
	{"sys/devices/system/cpu/online", "sys/devices/system/node"},
	{"proc/meminfo", "proc"},
}

const (
	cgroupFolder  = "sys/fs/cgroup"
	notRead       = "not among what the node pod reads"
	tryPrivileged = "; --privileged may read it"
	maxFailures   = 2000
)

// keepReading puts what was read of a node into the snapshot, with a gap for all
// that was wanted and is not there. Without are paths that the node does not have.
func (c *collector) keepReading(node string, r reader.Reading, samples int, without []string, failed error) {
	base := "nodes/" + node
	missing := func(name, reason, detail string) {
		c.builder.Gap(snapshot.Gap{Path: base + "/" + name, Reason: reason, Detail: detail})
	}
	here := map[string]bool{}
	add := func(name string, data []byte) {
		if err := c.builder.Add(base+"/"+name, data); err != nil {
			c.gap(base+"/"+name, err, "")
			return
		}
		here[name] = true
	}
	for _, f := range r.Once {
		if f.Path == reader.KernelLog {
			add(reader.KernelLog, f.Data)
		} else {
			add("root/"+f.Path, f.Data)
		}
	}
	sawGroups := here["root/"+cgroupFolder+"/unified/cgroup.controllers"]
	for _, f := range r.Once {
		sawGroups = sawGroups || strings.HasSuffix(f.Path, "/notify_on_release") // cgroup v1
	}
	for k, sample := range r.Samples {
		folder := fmt.Sprintf("samples/%d", k)
		for _, f := range sample.Files {
			add(folder+"/root/"+f.Path, f.Data)
			sawGroups = sawGroups || f.Path == cgroupFolder+"/cgroup.controllers"
		}
		if at := moment(sample); at != nil {
			add(folder+"/at.json", at)
		}
	}
	for i, f := range r.Failed {
		if i == maxFailures {
			break
		}
		name, reason := f.Path, snapshot.ReasonUnreadable
		switch {
		case f.Sample >= 0:
			name = fmt.Sprintf("samples/%d/root/%s", f.Sample, f.Path)
		case f.Path != reader.KernelLog:
			name = "root/" + f.Path
		}
		detail := f.Message
		if strings.HasSuffix(detail, "denied") || strings.HasSuffix(detail, "not permitted") {
			reason, detail = snapshot.ReasonForbidden, detail+tryPrivileged
		}
		missing(name, reason, detail)
		here[name] = true // known
	}

	reason, detail := snapshot.ReasonNotFound, "read whole: what is not here does not exist on the node"
	if failed != nil {
		reason, detail = failureOf(failed)
		missing("root", reason, detail)
		if !here[reader.KernelLog] {
			missing(reader.KernelLog, reason, detail)
		}
	}
	for _, folder := range readWhole {
		missing("root/"+folder, reason, detail)
	}
	for k := range max(samples, len(r.Samples)) {
		if k < len(r.Samples) && r.Samples[k].Whole {
			missing(fmt.Sprintf("samples/%d/root/%s", k, cgroupFolder), snapshot.ReasonNotFound, "read whole: what is not here does not exist on the node")
		} else {
			missing(fmt.Sprintf("samples/%d", k), reason, detail)
		}
	}
	if failed != nil {
		return
	}
	if sawGroups {
		missing("root/"+cgroupFolder, reason, detail)
	} else {
		missing("root/"+cgroupFolder, snapshot.ReasonUnreadable, "no cgroup of the node is to be seen"+tryPrivileged)
	}
	for _, sign := range signs {
		if !here["root/"+sign.file] {
			missing("root/"+sign.folder, snapshot.ReasonUnreadable, "not to be seen in the node pod"+tryPrivileged)
		}
	}
	for _, file := range nodepod.Optional() {
		file = strings.TrimPrefix(file, "/")
		switch {
		case here["root/"+file]:
		case slices.Contains(without, "/"+file):
			missing("root/"+file, snapshot.ReasonNotFound, "no such file on the node")
		default:
			missing("root/"+file, snapshot.ReasonUnreadable, "not to be seen in the node pod"+tryPrivileged)
		}
	}
	missing("root", snapshot.ReasonRefused, notRead)
}

// moment is at.json: the middle of the reading, by the node's clock and since its
// boot, and by the clock of this end. Nil where the node does not tell it.
func moment(s reader.Sample) []byte {
	if !s.Begin.HasUptime {
		return nil
	}
	end := s.End
	if !end.HasUptime {
		end = s.Begin
	}
	half := (end.Uptime - s.Begin.Uptime) / 2
	middle := s.Begin.Uptime + half
	data, err := json.Marshal(map[string]any{
		"time":          s.Begin.Node.Add(end.Node.Sub(s.Begin.Node) / 2).Format(time.RFC3339Nano),
		"uptimeSeconds": math.Round(middle.Seconds()*1000) / 1000,
		"received":      s.Begin.Received.Add(end.Received.Sub(s.Begin.Received) / 2).UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return nil
	}
	return append(data, '\n')
}

// failureOf is the gap of what a node pod could not give.
func failureOf(err error) (reason, detail string) {
	var denied *deniedError
	var refused *refusedError
	switch {
	case errors.As(err, &denied):
		return snapshot.ReasonForbidden, denied.Error()
	case errors.As(err, &refused):
		if refused.code == 401 || refused.code == 403 {
			return snapshot.ReasonForbidden, refused.text
		}
		return snapshot.ReasonRefused, refused.text
	case errors.Is(err, context.DeadlineExceeded):
		return snapshot.ReasonTimeout, strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error())
	}
	return reasonOf(err, "create pods/exec")
}

// missingNode notes why nothing of a node's files is there.
func (c *collector) missingNode(node string, err error) {
	reason, detail := failureOf(err)
	for _, name := range []string{"root", "samples", reader.KernelLog} {
		c.builder.Gap(snapshot.Gap{Path: path.Join("nodes", node, name), Reason: reason, Detail: detail})
	}
}
