package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volumes are what is known of storage.
type volumes struct {
	known  *Known
	claims map[string]*corev1.PersistentVolumeClaim // by namespace/name
	byName map[string]*corev1.PersistentVolume
	zones  map[string]*zone // of volumes, as they are asked for
}

// zone is where a volume can be attached: in any of these.
type zone struct {
	Volume, Claim string
	anyOf         []zoneTerm
}

// zoneTerm is one alternative: each label in one of its values.
type zoneTerm map[string][]string

func newVolumes(k *Known) volumes {
	v := volumes{known: k, claims: map[string]*corev1.PersistentVolumeClaim{}, byName: map[string]*corev1.PersistentVolume{}, zones: map[string]*zone{}}
	if k.Claims != nil {
		for i := range *k.Claims {
			c := &(*k.Claims)[i]
			v.claims[c.Namespace+"/"+c.Name] = c
		}
	}
	if k.Volumes != nil {
		for i := range *k.Volumes {
			v.byName[(*k.Volumes)[i].Name] = &(*k.Volumes)[i]
		}
	}
	return v
}

// of looks at the volumes of a pod. Any that is not made anew beside the pod from what every node has is a doubt: how many volumes a
// node can attach, and where a new one would be made, is not computed. What a zone proves does not depend on that. An ephemeral
// claim goes with its pod, and the next pod has another one: it keeps the pod nowhere.
func (v *volumes) of(pod *corev1.Pod) (zones []zone, doubts []DoubtReason) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if isPlain(volume) {
			continue
		}
		if !slices.Contains(doubts, DoubtVolume) {
			doubts = append(doubts, DoubtVolume)
		}
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := v.claims[pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName]
		if claim == nil || claim.Spec.VolumeName == "" || claim.DeletionTimestamp != nil {
			continue
		}
		if z := v.zoneOf(v.byName[claim.Spec.VolumeName]); z != nil {
			bound := *z
			bound.Claim = claim.Namespace + "/" + claim.Name
			zones = append(zones, bound)
		}
	}
	return zones, doubts
}

// isPlain reports whether a volume ties its pod to nothing that a scheduler counts.
func isPlain(v *corev1.Volume) bool {
	s := v.VolumeSource
	return s.EmptyDir != nil || s.ConfigMap != nil || s.Secret != nil || s.Projected != nil || s.DownwardAPI != nil || s.HostPath != nil || s.Image != nil || s.NFS != nil
}

// zoneOf is where a volume can be attached, nil where that is anywhere or not known. Only labels of zones count: a driver's own ones
// may be missing from nodes that it serves all the same, and Karpenter leaves out the host's name, which local volumes have.
func (v *volumes) zoneOf(volume *corev1.PersistentVolume) *zone {
	if volume == nil || volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	if z, known := v.zones[volume.Name]; known {
		return z
	}
	z := &zone{Volume: volume.Name}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		labels := zoneTerm{}
		for _, e := range term.MatchExpressions {
			if isZone(e.Key) && e.Operator == corev1.NodeSelectorOpIn && !slices.Contains(e.Values, "") {
				labels[e.Key] = append(labels[e.Key], e.Values...)
			}
		}
		if len(labels) == 0 {
			z = nil
			break
		}
		z.anyOf = append(z.anyOf, labels)
	}
	if z != nil && len(z.anyOf) == 0 {
		z = nil
	}
	v.zones[volume.Name] = z
	return z
}

func isZone(key string) bool {
	return key == corev1.LabelFailureDomainBetaZone || strings.HasSuffix(key, "/zone")
}

// barredZone is the first zone that the target is not in, nil where there is none. A node without any label of its zone may be
// anywhere.
func (t *target) barredZone(zones []zone) *zone {
	for i := range zones {
		if !slices.ContainsFunc(zones[i].anyOf, t.mayBeIn) {
			return &zones[i]
		}
	}
	return nil
}

func (t *target) mayBeIn(term zoneTerm) bool {
	if t.ambiguous {
		return true
	}
	for key, values := range term {
		own, hasOwn := t.labels.Labels[key]
		standard, has := t.labels.Labels[corev1.LabelTopologyZone]
		if hasOwn && slices.Contains(values, own) || has && slices.Contains(values, standard) || !hasOwn && !has {
			continue
		}
		return false
	}
	return true
}

// Zones are the values that the volume can be attached in, sorted.
func (z zone) Zones() []string {
	var out []string
	for _, term := range z.anyOf {
		for _, values := range term {
			out = append(out, values...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
