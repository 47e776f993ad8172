package collect

import (
	"regexp"
	"slices"
	"strings"
)

// settings are those of one program that a bundle keeps: they decide over
// removing nodes, and none of them is a secret.
type settings struct {
	variables []string
	flag      *regexp.Regexp // its name, without dashes
}

var (
	karpenterSettings = &settings{
		variables: []string{
			"FEATURE_GATES", "PREFERENCE_POLICY", "MIN_VALUES_POLICY", "BATCH_MAX_DURATION", "BATCH_IDLE_DURATION", "IGNORE_DRA_REQUESTS",
			"DISABLE_CLUSTER_STATE_OBSERVABILITY", "DISABLE_LEADER_ELECTION", "METRICS_PORT",
		},
		flag: regexp.MustCompile(`^(feature-gates|preference-policy|min-values-policy|batch-(max|idle)-duration|ignore-dra-requests|disable-cluster-state-observability|disable-leader-election|metrics-port)$`),
	}
	autoscalerSettings = &settings{
		flag: regexp.MustCompile(`^(scale-down-|skip-nodes-|ignore-(daemonsets|mirror-pods)-utilization|blocking-system-pod-|expendable-pods-|max-|min-replica-count|ok-total-unready-|unremovable-node-|scan-interval|status-config-map-name|write-status-configmap|new-pod-scale-up-delay|node-deletion-|daemonset-eviction-|force-ds|balance-similar-node-groups$)`),
	}
	settingValue = regexp.MustCompile(`^[A-Za-z0-9_.:,=%-]{0,400}$`)
)

// settingsOf are those of the program that a pod with this metadata runs, nil
// for every other.
func settingsOf(meta map[string]any) *settings {
	labels, _ := meta["labels"].(map[string]any)
	return settingsBy(func(key string) string {
		value, _ := labels[key].(string)
		return value
	})
}

func settingsBy(label func(key string) string) *settings {
	for _, key := range []string{"app.kubernetes.io/name", "k8s-app", "app"} {
		switch name := label(key); {
		case name == "karpenter":
			return karpenterSettings
		case strings.HasSuffix(name, "cluster-autoscaler"):
			return autoscalerSettings
		}
	}
	return nil
}

// flags are the settings among the words of a command line.
func (s *settings) flags(words []any) []any {
	kept := []any{}
	if s == nil {
		return kept
	}
	for i, w := range words {
		text, _ := w.(string)
		bare := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "-")
		name, value, hasValue := strings.Cut(bare, "=")
		if bare == text || !s.flag.MatchString(name) || !settingValue.MatchString(value) {
			continue
		}
		kept = append(kept, text)
		if next := nextWord(words, i); !hasValue && next != "" && !strings.HasPrefix(next, "-") && settingValue.MatchString(next) {
			kept = append(kept, next)
		}
	}
	return kept
}

func nextWord(words []any, i int) string {
	if i+1 >= len(words) {
		return ""
	}
	text, _ := words[i+1].(string)
	return text
}

// variable says whether a variable is a setting, and stays as it is.
func (s *settings) variable(v map[string]any) bool {
	name, _ := v["name"].(string)
	value, isText := v["value"].(string)
	return s != nil && isText && slices.Contains(s.variables, name) && settingValue.MatchString(value)
}
