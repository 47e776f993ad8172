package scenario

// Possible returns the results that the replay names. They leave out the levels of containers that the kubelet's result leaves out: not
// every version tells them.
func (o Output) Possible(kubelet Output) []Output {
	possible := append([]Output{o}, o.Alternatives...)
	possible[0].Alternatives = nil
	for _, out := range possible {
		for i := range min(len(out.Steps), len(kubelet.Steps)) {
			told := kubelet.Steps[i].Containers
			for j := range min(len(out.Steps[i].Containers), len(told)) {
				c := &out.Steps[i].Containers[j]
				if told[j].CPULevel == "" {
					c.CPULevel = ""
				}
				if told[j].MemLevel == "" {
					c.MemLevel = ""
				}
			}
		}
	}
	return possible
}
