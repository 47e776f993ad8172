package history

import (
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
)

// choosable are the devices that others can have held when the pod came.
func (h *hunt) choosable() []podresources.Device {
	if h.in.FreeDevices == nil {
		return nil
	}
	return h.in.FreeDevices(h.step.Pod.Pod, uidsOf(h.step.before))
}

// deviceChoices are sets of them, by places: all of one place, then of two, and so on. Devices of one place bear on the hints alike, so
// that more sets than these need not be tried; how few of a place do is found afterwards.
func (h *hunt) deviceChoices() [][]podresources.Device {
	const mostPlaces = 6
	var places [][]podresources.Device
	for _, d := range h.choosable() {
		i := slices.IndexFunc(places, func(p []podresources.Device) bool {
			return p[0].Resource == d.Resource && slices.Equal(p[0].Nodes, d.Nodes)
		})
		if i < 0 {
			places = append(places, []podresources.Device{d})
			continue
		}
		places[i] = append(places[i], d)
	}
	if len(places) > mostPlaces {
		return nil
	}
	var out [][]podresources.Device
	for size := 1; size <= len(places); size++ {
		for bits := range 1 << len(places) {
			var set []podresources.Device
			count := 0
			for i, p := range places {
				if bits>>i&1 == 1 {
					count++
					set = append(set, p...)
				}
			}
			if count == size {
				out = append(out, set)
			}
		}
	}
	return out
}

// deviceOnly looks for devices that explain the record where nobody held other CPUs or memory.
func (h *hunt) deviceOnly() bool {
	defer func() { h.gone = nil }()
	for _, choice := range h.deviceChoices() {
		h.gone = choice
		if _, ok := h.with(cpuset.Set{}); ok {
			h.thinDevices(func() bool { _, ok := h.with(cpuset.Set{}); return ok })
			h.step.HeldDevices = h.gone
			h.runs = min(h.runs, h.most-1)
			h.try(h.step, h.known, h.gone...)
			return true
		}
	}
	return false
}

// devicesAndCPUs looks for both at once: the replay's lead, no search of all choices.
func (h *hunt) devicesAndCPUs() bool {
	defer func() { h.gone = nil }()
	for _, choice := range h.deviceChoices() {
		h.gone = choice
		cores, ok := h.greedy(nil)
		if !ok {
			continue
		}
		cores = h.thin(cores, nil)
		h.thinDevices(func() bool { _, ok := h.with(union(cores)); return ok })
		h.step.HeldDevices, h.step.DevicesBeside = h.gone, true
		return h.settle(union(cores), nil)
	}
	return false
}

// thinDevices drops those that are not needed, one after the other.
func (h *hunt) thinDevices(does func() bool) {
	for i := 0; i < len(h.gone); {
		all := h.gone
		if h.gone = slices.Delete(slices.Clone(all), i, i+1); !does() {
			h.gone = all
			i++
		}
	}
}
