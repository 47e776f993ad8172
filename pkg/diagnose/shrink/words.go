package shrink

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func utc(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}

// instant is a moment in UTC, and in the viewer's zone where one was asked for.
func (c *Cluster) instant(t time.Time) string {
	if c.zone == nil || t.IsZero() {
		return utc(t)
	}
	return fmt.Sprintf("%s (%s %s)", utc(t), t.In(c.zone).Format("2006-01-02 15:04"), c.zone)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func join(items []string) string {
	switch n := len(items); n {
	case 0:
		return "none"
	case 1:
		return items[0]
	default:
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
}

// some are the first few of many names, and how many are left.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return join(names)
	}
	return strings.Join(names[:most], ", ") + " and " + plural(len(names)-most, "other")
}

// span is a duration as a person says it, exact to the second.
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/=:-]+$`)

// shellWord quotes text for a POSIX shell where it needs that.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// editCommand opens what made a pod, where that is one of the built-in kinds.
func editCommand(pod *corev1.Pod) string {
	kind, name, _ := strings.Cut(workload(pod), " ")
	switch kind {
	case "Deployment", "ReplicaSet", "StatefulSet":
		_, name, _ = strings.Cut(name, "/")
		return fmt.Sprintf("kubectl -n %s edit %s %s", shellWord(pod.Namespace), strings.ToLower(kind), shellWord(name))
	}
	return ""
}
