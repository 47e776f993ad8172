package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// runtimeThreads is what is known of a container's threads and of the language
// runtime that starts them.
type runtimeThreads struct {
	threads  int    // 0 where not known
	comm     string // the name of the process with most threads, as it calls itself
	language language
	settings []threadSetting
	evidence []report.Evidence
}

// threadSetting is a setting in the pod's spec that sizes a runtime.
type threadSetting struct{ name, value string }

// threadVariables are environment variables that say how many threads run.
var threadVariables = []string{
	"GOMAXPROCS", "UV_THREADPOOL_SIZE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DOTNET_PROCESSOR_COUNT",
	"WEB_CONCURRENCY", "RAILS_MAX_THREADS", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS",
}

// javaVariables hold options of a Java machine.
var javaVariables = []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS"}

// javaCount is the option that says how many CPUs a Java machine counts.
const javaCount = "-XX:ActiveProcessorCount"

// threadsOf counts a container's threads, and finds what starts them.
func (c *podCase) threadsOf(k containerCPU) runtimeThreads {
	var r runtimeThreads
	g := k.own().group
	if n, err := g.PIDsCurrent(); err == nil && n > 0 && n < 1<<22 {
		r.threads = int(n)
		r.evidence = append(r.evidence, c.fileEvidence(g.File("pids.current"), "", fmt.Sprint(n), "processes and threads that share the quota"))
	}
	var total uint64
	var most cgroup.Process
	for _, p := range c.processesOf(k.container) {
		total += p.Threads
		if most.PID == 0 || p.Threads > most.Threads {
			most = p
		}
	}
	if r.threads == 0 && total < 1<<22 {
		r.threads = int(total)
	}
	if most.PID != 0 {
		r.comm = most.Name
		r.language, _ = languageOfComm(most.Name)
		r.evidence = append(r.evidence, c.fileEvidence(most.Dir()+"/status", "Name", cutText(most.Name), "the container's process with most threads: "+plural(most.Threads, "thread")))
	}
	if lang, ok := languageOfImage(k.Image); ok && r.comm == "" {
		r.language = lang
		r.evidence = append(r.evidence, c.podField(k.field("spec")+".image", cutText(k.Image), "by its name, an image of "+string(lang)))
	}
	r.readSettings(c, k.container)
	for _, s := range r.settings {
		switch {
		case r.language != "":
		case s.name == "GOMAXPROCS":
			r.language = golang
		case s.name == javaCount:
			r.language = jvm
		}
	}
	return r
}

// readSettings finds what of the pod's spec sizes a runtime.
func (r *runtimeThreads) readSettings(c *podCase, k container) {
	add := func(field, name, value string) {
		r.settings = append(r.settings, threadSetting{name, value})
		r.evidence = append(r.evidence, c.podField(k.field("spec")+"."+field, cutText(value), "sizes the runtime"))
	}
	for _, e := range k.Env {
		switch {
		case slices.Contains(threadVariables, e.Name):
			value := e.Value
			if e.ValueFrom != nil {
				value = variableSource(e.ValueFrom)
			}
			if value != "" {
				add("env["+e.Name+"]", e.Name, value)
			}
		case slices.Contains(javaVariables, e.Name):
			if option, ok := javaOption(strings.Fields(e.Value)); ok {
				add("env["+e.Name+"]", javaCount, option)
			}
		}
	}
	for _, list := range []struct {
		field string
		args  []string
	}{{"command", k.Command}, {"args", k.Args}} {
		for _, arg := range list.args {
			if option, ok := javaOption(strings.Fields(arg)); ok {
				add(list.field, javaCount, option)
				break
			}
		}
	}
}

// javaOption finds the option that sets the number of CPUs a Java machine counts.
func javaOption(words []string) (string, bool) {
	i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, javaCount+"=") })
	if i < 0 {
		return "", false
	}
	return words[i], true
}

func variableSource(from *corev1.EnvVarSource) string {
	if r := from.ResourceFieldRef; r != nil {
		return "from " + r.Resource
	}
	return ""
}

// parallel is how many threads can run at once, 0 where not known: all there
// are, and of a Go program no more than GOMAXPROCS.
func (r runtimeThreads) parallel() int {
	for _, s := range r.settings {
		if n, err := strconv.Atoi(s.value); s.name == "GOMAXPROCS" && err == nil && n > 0 && (r.threads == 0 || n < r.threads) {
			return n
		}
	}
	return r.threads
}

// knob says how to set the number of threads, by what the process is.
func (r runtimeThreads) knob(n int) string {
	var text string
	switch name := strings.ToLower(r.comm); {
	case r.language == jvm:
		text = fmt.Sprintf("%s=%d (by itself it counts the limit rounded up, unless the option says otherwise)", javaCount, n)
	case r.language == nodejs:
		text = "UV_THREADPOOL_SIZE (4 by default, beside the main thread and V8's own workers), and the number of worker processes"
	case r.language == golang:
		text = fmt.Sprintf("GOMAXPROCS=%d (from Go 1.25 on it follows the limit of its own cgroup, but takes 2 at least)", n)
	case r.language == python:
		text = fmt.Sprintf("the number of workers, and OMP_NUM_THREADS=%d (its libraries count the CPUs of the cpuset, not the limit)", n)
	case r.language == ruby:
		text = "WEB_CONCURRENCY and RAILS_MAX_THREADS"
	case r.language == php:
		text = "pm.max_children"
	case name == "dotnet":
		text = fmt.Sprintf("DOTNET_PROCESSOR_COUNT=%d", n)
	case strings.HasPrefix(name, "nginx"):
		text = fmt.Sprintf("worker_processes %d (auto counts the node's CPUs)", n)
	default:
		text = fmt.Sprintf("GOMAXPROCS=%d for a Go program (from Go 1.25 on it follows the limit of its own cgroup, but takes 2 at least), %s for Java, else its worker count", n, javaCount)
	}
	for _, s := range r.settings {
		text += fmt.Sprintf("; the spec sets %s", s.text())
	}
	return text
}

func (s threadSetting) text() string {
	if strings.HasPrefix(s.value, s.name) {
		return quoted(s.value)
	}
	return s.name + " to " + quoted(s.value)
}

// quoted shows a text that a stranger wrote.
func quoted(text string) string { return fmt.Sprintf("%q", cutText(text)) }
