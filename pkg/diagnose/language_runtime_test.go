package diagnose

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestHeapSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		k    corev1.Container
		lang language
		want string // flag=bytes or share of each, in the order they count
	}{
		{"none", corev1.Container{}, jvm, ""},
		{"the tool's options", envOf("JAVA_TOOL_OPTIONS", "-Xmx512m -XX:MaxMetaspaceSize=128M"), jvm, "-Xmx512m=536870912 -XX:MaxMetaspaceSize=128M=134217728"},
		{"a percentage", envOf("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75.0"), jvm, "-XX:MaxRAMPercentage=75.0=75 %"},
		{"sizes of every unit", envOf("JAVA_OPTS", "-Xms1024 -Xmx1k -Xmx1K -Xmx2G -Xmx1t"), jvm, "-Xms1024=1024 -Xmx1k=1024 -Xmx1K=1024 -Xmx2G=2147483648 -Xmx1t=1099511627776"},
		{"the command line over the tool's options, _JAVA_OPTIONS over both", corev1.Container{
			Env:  []corev1.EnvVar{{Name: "_JAVA_OPTIONS", Value: "-Xmx3g"}, {Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx1g"}},
			Args: []string{"-Xmx2g", "-jar", "app.jar"}}, jvm, "-Xmx1g=1073741824 -Xmx2g=2147483648 -Xmx3g=3221225472"},
		{"a shell's command", corev1.Container{Command: []string{"sh", "-c", `exec java "-Xmx64m" -jar app.jar`}}, jvm, "-Xmx64m=67108864"},
		{"a variable of another name", envOf("SECRET", "-Xmx512m"), jvm, ""},
		{"a variable from a secret", corev1.Container{Env: []corev1.EnvVar{{Name: "JAVA_OPTS", ValueFrom: &corev1.EnvVarSource{}}}}, jvm, ""},
		{"not a size", envOf("JAVA_OPTS", "-Xmxhuge -Xmx -Xmx-1 -Xmx1e9 -XX:MaxRAMPercentage=x -Xmx5mm"), jvm, ""},
		{"a size beyond numbers", envOf("JAVA_OPTS", "-Xmx999999999999999t"), jvm, "-Xmx999999999999999t=9223372036854775807"},
		{"the old space of V8", envOf("NODE_OPTIONS", "--max-old-space-size=400 --inspect=secret"), nodejs, "--max-old-space-size=400=419430400"},
		{"the old space in its other spelling", corev1.Container{Args: []string{"node", "--max_old_space_size=400", "server.js"}}, nodejs, "--max_old_space_size=400=419430400"},
		{"GOMEMLIMIT", envOf("GOMEMLIMIT", "400MiB"), golang, "GOMEMLIMIT=400MiB=419430400"},
		{"GOMEMLIMIT in bytes", envOf("GOMEMLIMIT", "419430400"), golang, "GOMEMLIMIT=419430400=419430400"},
		{"GOMEMLIMIT off", envOf("GOMEMLIMIT", "off"), golang, "GOMEMLIMIT=off=0"},
		{"GOMEMLIMIT that Go does not take", envOf("GOMEMLIMIT", "400Mi"), golang, ""},
		{"GOGC", envOf("GOGC", "50"), golang, "GOGC=50=0"},
	} {
		var got []string
		for _, s := range heapSettings(container{Container: c.k})[c.lang] {
			size := fmt.Sprint(s.bytes)
			if s.share > 0 {
				size = percent(s.share)
			}
			got = append(got, s.flag+"="+size)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func envOf(name, value string) corev1.Container {
	return corev1.Container{Env: []corev1.EnvVar{{Name: name, Value: value}}}
}

func TestLanguageOfImage(t *testing.T) {
	for image, want := range map[string]language{
		"eclipse-temurin:21-jre": jvm, "docker.io/library/openjdk:17": jvm, "gcr.io/distroless/java21-debian12": jvm, "amazoncorretto@sha256:0a": jvm,
		"node:22-alpine": nodejs, "gcr.io/distroless/nodejs20-debian12:nonroot": nodejs, "registry.example:5000/golang:1.26": golang,
		"python:3.13": python, "php-fpm:8": php, "ruby": ruby,
		"quay.io/prometheus/node-exporter:v1": "", "registry.k8s.io/node-problem-detector/node-problem-detector:v0.8": "",
		"registry.example/app:1": "", "javascript-app": "", "nodered": "", "": "", "/": "",
	} {
		if got, _ := languageOfImage(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}

func TestLanguageOfComm(t *testing.T) {
	for comm, want := range map[string]language{
		"java": jvm, "node": nodejs, "node-MainThread": nodejs, "python3.13": python, "gunicorn": python, "ruby3.2": ruby, "puma 6.4": ruby, "php-fpm": php, "php-fpm8.3": php,
		"javac": "", "nodeadm": "", "pythonic": "", "rubyist": "", "app": "", "": "",
	} {
		if got, _ := languageOfComm(comm); got != want {
			t.Errorf("%q: %q, want %q", comm, got, want)
		}
	}
}

// process adds a process of container app to the node's /proc.
func (b *bundle) process(pid int, name, cgroup string, rssKB int) {
	b.files[b.root(fmt.Sprintf("proc/%d/status", pid))] = fmt.Sprintf("Name:\t%s\nVmRSS:\t%d kB\n", name, rssKB)
	b.files[b.root(fmt.Sprintf("proc/%d/cgroup", pid))] = "0::" + cgroup + "\n"
}

// What is said of a container that its heap fills, by what it runs.
func TestHeapAdvice(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*bundle)
		text  []string
		lacks string
	}{
		{"not known", func(*bundle) {}, []string{"Set the runtime's own limit"}, "JVM"},
		{"a JVM by its process, without a setting", func(b *bundle) { b.process(900, "java", b.dir("app"), 100_000) },
			[]string{`"field":"Name","value":"java"`, "25 % of the limit, 32Mi", "metaspace"}, ""},
		{"a JVM by the kernel's view of its cgroup", func(b *bundle) { b.process(900, "java", "/../.."+b.dir("app"), 100_000) }, []string{"metaspace"}, ""},
		{"the largest process counts", func(b *bundle) {
			b.process(900, "node", b.dir("app"), 1_000)
			b.process(901, "java", b.dir("app"), 100_000)
		}, []string{"metaspace"}, "old-space"},
		{"another container's process", func(b *bundle) {
			b.process(900, "java", b.dir(podGroup)+"/cri-containerd-"+strings.Repeat("0", 64)+".scope", 100_000)
		}, []string{"Set the runtime's own limit"}, "JVM"},
		{"a JVM with a heap that fits", func(b *bundle) {
			*b.container("app") = withEnv(*b.container("app"), "JAVA_TOOL_OPTIONS", "-Xmx100m -Dtoken=hunter2")
		},
			[]string{"-Xmx100m", "leaves 28Mi for metaspace", "134217728 − 104857600 = 29360128"}, "hunter2"},
		{"a JVM with a heap above the limit", func(b *bundle) { *b.container("app") = withEnv(*b.container("app"), "JAVA_TOOL_OPTIONS", "-Xmx1g") }, []string{"Set -Xmx1g of container app below its limit", "1Gi (1073741824 bytes)"}, ""},
		{"a JVM with a share of the limit", func(b *bundle) {
			*b.container("app") = withEnv(*b.container("app"), "JAVA_OPTS", "-XX:MaxRAMPercentage=75")
		}, []string{"leaves 32Mi"}, ""},
		{"Go by its setting", func(b *bundle) { *b.container("app") = withEnv(*b.container("app"), "GOGC", "100") }, []string{"Set GOMEMLIMIT of container app", "115MiB", "soft limit"}, ""},
		{"Go with a limit of its own", func(b *bundle) { *b.container("app") = withEnv(*b.container("app"), "GOMEMLIMIT", "120MiB") }, []string{"leaves 8Mi for what is not the Go runtime's"}, ""},
		{"Node.js by its image", func(b *bundle) { b.container("app").Image = "node:22" }, []string{`"value":"node:22"`, "--max-old-space-size of container app"}, ""},
		{"Python", func(b *bundle) { b.process(900, "gunicorn", b.dir("app"), 100_000) }, []string{"Python knows nothing of the memory limit of 128Mi"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := cachePod(t)
			b.uses("app", 115<<20, 0, 0)
			b.uses(podGroup, 117<<20, 0, 0)
			c.edit(b)
			ruleCase{loose: true, want: []string{"memory-filled-by-anon@app proven"}, text: c.text, lacks: append([]string{"hunter2"}, strings.Fields(c.lacks)...)}.expect(t, b.explain(Options{}), report.MemoryFilledByAnon)
		})
	}
}

// expect checks the findings of one code.
func (c ruleCase) expect(t *testing.T, r report.Report, code report.Code) {
	t.Helper()
	for _, wrong := range c.check(r, []report.Code{code}) {
		t.Error(wrong)
	}
}

func withEnv(k corev1.Container, name, value string) corev1.Container {
	k.Env = []corev1.EnvVar{{Name: name, Value: value}}
	return k
}

// What the memory-backed volumes may take of the limit, and what they hold.
func TestVolumeRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*bundle)
		text string
	}{
		{"none", func(*bundle) {}, "no memory-backed volume: it is /dev/shm"},
		{"larger than the limit", func(b *bundle) { memoryVolume(b, "200Mi") }, "may hold 200Mi, and the limit is 128Mi"},
		{"that fits", func(b *bundle) { memoryVolume(b, "96Mi") }, "may hold 96Mi; that leaves 32Mi"},
		{"without a size", func(b *bundle) {
			memoryVolume(b, "96Mi")
			b.pod().Spec.Volumes[len(b.pod().Spec.Volumes)-1].EmptyDir.SizeLimit = nil
		}, "Without a sizeLimit"},
		{"that was measured", func(b *bundle) {
			memoryVolume(b, "200Mi")
			b.files["nodes/"+b.node+"/stats-summary.json"] = fmt.Sprintf(`{"pods":[{"podRef":{"uid":%q},"volume":[{"name":"scratch","usedBytes":104857600}]}]}`, b.pod().UID)
		}, "volume scratch holds 100Mi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := cachePod(t)
			b.uses("app", 5<<20, 105<<20, 105<<20)
			b.uses(podGroup, 7<<20, 105<<20, 105<<20)
			c.edit(b)
			ruleCase{want: []string{"memory-filled-by-tmpfs@app proven"}, text: []string{c.text}}.expect(t, b.explain(Options{}), report.MemoryFilledByTmpfs)
		})
	}
}

// Page cache that fills a limit is a harm only where it is needed again.
func TestCacheHarm(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*bundle)
		text string
	}{
		"harmless":         {func(*bundle) {}, "it does no harm"},
		"needed":           {thrashes, "memory-reclaim-thrash"},
		"needed, no harm":  {func(b *bundle) { b.refaults("app", 12, 0) }, "12 pages that were taken back"},
		"not known at all": {(*bundle).oneReading, "takes back under pressure (88.1 % of the limit of 128Mi), now.\""},
	} {
		t.Run(name, func(t *testing.T) {
			b := cachePod(t)
			c.edit(b)
			ruleCase{loose: true, want: []string{"memory-filled-by-page-cache@app proven"}, text: []string{c.text}}.expect(t, b.explain(Options{}), report.MemoryFilledByPageCache)
		})
	}
}
