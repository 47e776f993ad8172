package diagnose

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// language is a runtime that sizes its heap by rules of its own.
type language string

const (
	jvm    language = "JVM"
	golang language = "Go"
	nodejs language = "Node.js"
	// Interpreters that know nothing of a memory limit.
	python language = "Python"
	ruby   language = "Ruby"
	php    language = "PHP"
)

// languageRuntime is what a container's main language is taken for.
type languageRuntime struct {
	language language
	because  []report.Evidence
	settings []heapSetting // in the order that the runtime takes them, the last wins
}

// heapSetting is one setting that sizes a runtime. No more of the text that it
// stood in is kept: environment variables and arguments may hold secrets.
type heapSetting struct {
	flag  string // "-Xmx512m", "GOMEMLIMIT=400MiB"
	where string // field of the pod
	bytes uint64 // the size it asks for; 0 for a percentage
	share float64
}

// languageOf recognises a container's language: by the names of its processes,
// in /proc or in the kernel's report of an OOM, by a setting that only this
// runtime reads, else by the name of its image. Command lines and environments
// of processes are never read.
func (c *podCase) languageOf(k container) (languageRuntime, bool) {
	var r languageRuntime
	var largest uint64
	for _, p := range c.processesOf(k) {
		lang, ok := languageOfComm(p.Name)
		if ok && (r.language == "" || p.RSSKB > largest) {
			r.language, largest = lang, p.RSSKB
			r.because = []report.Evidence{c.fileEvidence(p.Dir()+"/status", "Name", p.Name, fmt.Sprintf("process %d of container %s, %s resident", p.PID, k.Name, bytes(p.RSSKB*1024)))}
		}
	}
	if r.language == "" {
		kills := c.oom().of(k.Name)
		for i := len(kills) - 1; i >= 0 && r.language == ""; i-- {
			if lang, ok := languageOfComm(kills[i].Task); ok {
				r.language, r.because = lang, []report.Evidence{killEvidence(kills[i], "the process that was killed")}
			}
		}
	}
	settings := heapSettings(k)
	if r.language == "" {
		for lang := range settings {
			if r.language == "" || lang < r.language {
				r.language = lang
			}
		}
	}
	if lang, ok := languageOfImage(k.Image); ok && r.language == "" {
		r.language, r.because = lang, []report.Evidence{c.podField(k.field("spec")+".image", k.Image, "by its name, an image of "+string(lang))}
	}
	r.settings = settings[r.language]
	for _, s := range r.settings {
		r.because = append(r.because, c.podField(s.where, s.flag, "sizes the "+string(r.language)))
	}
	return r, r.language != ""
}

// processesOf are the processes of a container in the order of their numbers.
func (c *podCase) processesOf(k container) []cgroup.Process {
	all, err := c.processes()
	if err != nil {
		return nil
	}
	ids := k.ids()
	var out []cgroup.Process
	for _, p := range all {
		info := cgroup.ParsePath(p.Cgroup)
		if info.Level == cgroup.Container && info.PodUID == c.uid && slices.Contains(ids, info.ContainerID) {
			out = append(out, p)
		}
	}
	return out
}

var (
	pythonComm = regexp.MustCompile(`^(python[0-9.]*|gunicorn|uwsgi|celery)$`)
	rubyComm   = regexp.MustCompile(`^(ruby[0-9.]*|puma|unicorn|sidekiq)\b`)
	phpComm    = regexp.MustCompile(`^php(-fpm)?[0-9.]*$`)
)

// languageOfComm goes by the name that a process has. A Go program has any.
func languageOfComm(comm string) (language, bool) {
	switch {
	case comm == "java":
		return jvm, true
	case comm == "node" || comm == "nodejs" || comm == "node-MainThread":
		return nodejs, true
	case pythonComm.MatchString(comm):
		return python, true
	case rubyComm.MatchString(comm):
		return ruby, true
	case phpComm.MatchString(comm):
		return php, true
	}
	return "", false
}

var imagesOf = []struct {
	language language
	name     *regexp.Regexp
}{
	{jvm, regexp.MustCompile(`^(openjdk|java[0-9]*|jdk[0-9]*|jre[0-9]*|(eclipse-)?temurin|(amazon)?corretto|ibm-semeru-runtimes|sapmachine|zulu-openjdk|tomcat|jetty|wildfly|keycloak|elasticsearch|logstash|cassandra|kafka|zookeeper|jenkins|neo4j)(-|_|$)`)},
	{golang, regexp.MustCompile(`^golang(-|_|$)`)},
	{nodejs, regexp.MustCompile(`^node(js)?[0-9]*(-|_|$)`)},
	{python, regexp.MustCompile(`^python[0-9]*(-|_|$)`)},
	{ruby, regexp.MustCompile(`^ruby(-|_|$)`)},
	{php, regexp.MustCompile(`^php(-|_|$)`)},
}

// languageOfImage goes by the last element of the image's name, without tag.
func languageOfImage(image string) (language, bool) {
	name, _, _ := strings.Cut(image, "@")
	name, _, _ = strings.Cut(path.Base(name), ":")
	if name == "node-exporter" || name == "node_exporter" || strings.HasPrefix(name, "node-problem-detector") {
		return "", false // of nodes, not of Node.js
	}
	for _, i := range imagesOf {
		if i.name.MatchString(name) {
			return i.language, true
		}
	}
	return "", false
}

var (
	jvmSize    = regexp.MustCompile(`^-(Xmx|Xms)([0-9]{1,15})([kKmMgGtT]?)$`)
	jvmOption  = regexp.MustCompile(`^-XX:(MaxRAMPercentage|InitialRAMPercentage|MaxDirectMemorySize|MaxMetaspaceSize|ReservedCodeCacheSize|MaxHeapSize)=([0-9]{1,15})(\.[0-9]{1,6})?([kKmMgGtT]?)$`)
	oldSpace   = regexp.MustCompile(`^--max[-_]old[-_]space[-_]size=([0-9]{1,12})$`)
	goMemLimit = regexp.MustCompile(`^([0-9]{1,18})(B|KiB|MiB|GiB|TiB)?$`)
	goGC       = regexp.MustCompile(`^(off|[0-9]{1,9})$`)
)

// jvmVariables are read by the JVM itself, the first before the command line;
// what stands last wins. Others of the usual names reach it through a script.
var jvmVariables = []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "JAVA_OPTIONS", "JVM_OPTS", "CATALINA_OPTS", "ES_JAVA_OPTS", "LS_JAVA_OPTS", "KAFKA_HEAP_OPTS"}

// heapSettings picks the settings of an allow-list out of the container's
// environment variables and arguments.
func heapSettings(k container) map[language][]heapSetting {
	found := map[language][]heapSetting{}
	fromWords := func(words []string, where string) {
		for _, word := range words {
			if s, lang, ok := parseHeapFlag(strings.Trim(word, `"'`)); ok {
				s.where = where
				found[lang] = append(found[lang], s)
			}
		}
	}
	variables := map[string]string{}
	for _, e := range k.Env {
		if e.ValueFrom == nil {
			variables[e.Name] = e.Value // the last of equal names counts
		}
	}
	env := func(name string) {
		if value, ok := variables[name]; ok {
			fromWords(strings.Fields(value), fmt.Sprintf("%s.env[%s]", k.field("spec"), name))
		}
	}
	for _, name := range jvmVariables {
		env(name)
	}
	env("NODE_OPTIONS")
	for _, list := range []struct {
		name  string
		words []string
	}{{"command", k.Command}, {"args", k.Args}} {
		for _, argument := range list.words {
			fromWords(strings.Fields(argument), k.field("spec")+"."+list.name)
		}
	}
	env("_JAVA_OPTIONS")
	if value, ok := variables["GOMEMLIMIT"]; ok {
		s := heapSetting{flag: "GOMEMLIMIT", where: fmt.Sprintf("%s.env[GOMEMLIMIT]", k.field("spec"))}
		if m := goMemLimit.FindStringSubmatch(value); m != nil {
			s.flag, s.bytes = "GOMEMLIMIT="+value, sized(m[1], strings.TrimSuffix(strings.TrimSuffix(m[2], "B"), "i"))
			found[golang] = append(found[golang], s)
		} else if value == "off" {
			s.flag = "GOMEMLIMIT=off"
			found[golang] = append(found[golang], s)
		}
	}
	if value, ok := variables["GOGC"]; ok && goGC.MatchString(value) {
		found[golang] = append(found[golang], heapSetting{flag: "GOGC=" + value, where: fmt.Sprintf("%s.env[GOGC]", k.field("spec"))})
	}
	return found
}

func parseHeapFlag(word string) (heapSetting, language, bool) {
	if m := jvmSize.FindStringSubmatch(word); m != nil {
		return heapSetting{flag: word, bytes: sized(m[2], m[3])}, jvm, true
	}
	if m := jvmOption.FindStringSubmatch(word); m != nil {
		s := heapSetting{flag: word}
		if strings.HasSuffix(m[1], "Percentage") {
			s.share, _ = strconv.ParseFloat(m[2]+m[3], 64)
			s.share /= 100
		} else {
			s.bytes = sized(m[2], m[4])
		}
		return s, jvm, true
	}
	if m := oldSpace.FindStringSubmatch(word); m != nil {
		return heapSetting{flag: word, bytes: sized(m[1], "M")}, nodejs, true
	}
	return heapSetting{}, "", false
}

// sized is a number of binary units, as all of these runtimes count.
func sized(digits, unit string) uint64 {
	n, err := strconv.ParseUint(digits, 10, 64)
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(unit)]
	if err != nil || n > math.MaxInt64>>shift {
		return math.MaxInt64
	}
	return n << shift
}

// last is the last setting whose flag begins so: the one that counts.
func (r languageRuntime) last(prefixes ...string) (heapSetting, bool) {
	for _, s := range slices.Backward(r.settings) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(s.flag, prefix) {
				return s, true
			}
		}
	}
	return heapSetting{}, false
}

// heap is the heap that the runtime may grow to under a limit, and by which
// setting. ok is false where no rule says so.
func (r languageRuntime) heap(limit uint64) (size uint64, by string, ok bool) {
	switch r.language {
	case jvm:
		if s, ok := r.last("-Xmx", "-XX:MaxHeapSize="); ok {
			return s.bytes, s.flag, true
		}
		if s, ok := r.last("-XX:MaxRAMPercentage="); ok && s.share <= 1 {
			return uint64(float64(limit) * s.share), s.flag, true
		}
	case golang:
		if s, ok := r.last("GOMEMLIMIT="); ok && s.bytes > 0 {
			return s.bytes, s.flag, true
		}
	case nodejs:
		if s, ok := r.last("--max"); ok {
			return s.bytes, s.flag, true
		}
	}
	return 0, "", false
}

// besideHeap is what a runtime needs beside its heap.
var besideHeap = map[language]string{
	jvm:    "metaspace, code cache (up to 240Mi), thread stacks (up to 1Mi each), direct buffers (by default as much as the heap) and the collector's own tables",
	golang: "what is not the Go runtime's: memory of C libraries, memory-mapped files, tmpfs",
	nodejs: "buffers, the young generation, native modules and thread stacks",
}

// heapAdvice sizes a container's runtime against a memory limit, 0 for none.
// Where the language is not known, or the limit, there is no advice.
func (c *podCase) heapAdvice(name string, limit uint64) ([]report.Remedy, []report.Evidence) {
	for _, k := range c.containers() {
		if k.Name != name || limit == 0 {
			continue
		}
		if r, ok := c.languageOf(k); ok {
			return r.remedies(k.Name, limit), r.because
		}
	}
	return nil, nil
}

func (r languageRuntime) remedies(container string, limit uint64) []report.Remedy {
	size, by, set := r.heap(limit)
	remedy := report.Remedy{}
	switch {
	case set && size >= limit:
		remedy.Summary = fmt.Sprintf("Set %s of container %s below its limit: it allows %s, and the limit is %s.", by, container, bothBytes(size), bothBytes(limit))
		remedy.Effect = "The " + string(r.language) + " then collects or fails by itself before the kernel kills. Beside it there must be room for " + besideHeap[r.language] + "."
		return []report.Remedy{remedy}
	case set:
		remedy.Summary = fmt.Sprintf("Weigh %s of container %s against its limit of %s: it leaves %s for %s.", by, container, bytes(limit), bytes(limit-size), besideHeap[r.language])
		remedy.Effect = fmt.Sprintf("%d − %d = %d bytes beside the heap.", limit, size, limit-size)
		return []report.Remedy{remedy}
	}
	switch r.language {
	case jvm:
		remedy.Summary = fmt.Sprintf("Set the heap of container %s: -XX:MaxRAMPercentage or -Xmx, with room under the limit of %s for %s.", container, bytes(limit), besideHeap[jvm])
		remedy.Effect = fmt.Sprintf("No setting of the heap stands in the pod's spec; the JVM's default is 25 %% of the limit, %s, so that more than this is not heap, or a script in the image sets another.", bytes(limit/4))
	case golang:
		remedy.Summary = fmt.Sprintf("Set GOMEMLIMIT of container %s to some nine tenths of the limit of %s (%dMiB).", container, bytes(limit), limit/10*9>>20)
		remedy.Effect = "Go does not read the memory limit itself; near GOMEMLIMIT it collects more often."
		remedy.Caution = "It is a soft limit: live data beyond it still grow, and the collector then costs CPU."
	case nodejs:
		remedy.Summary = fmt.Sprintf("Set --max-old-space-size of container %s (NODE_OPTIONS, in MiB) below the limit of %s (%d bytes), with room for %s.", container, bytes(limit), limit, besideHeap[nodejs])
		remedy.Effect = "V8 then collects or ends by itself before the kernel kills."
	default:
		remedy.Summary = fmt.Sprintf("Bound what container %s keeps: %s knows nothing of the memory limit of %s; fewer worker processes hold less.", container, r.language, bytes(limit))
	}
	return []report.Remedy{remedy}
}
