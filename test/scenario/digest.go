package scenario

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// Shortened returns a result with a digest in place of each state, which tells whether another result has the same.
func (o Output) Shortened() Output {
	o.Setup.State = o.Setup.State.shortened()
	o.Steps = slices.Clone(o.Steps)
	for i := range o.Steps {
		s := &o.Steps[i]
		s.State, s.AtReject = s.State.shortened(), s.AtReject.shortened()
		if s.Restart != nil {
			restart := *s.Restart
			restart.State = restart.State.shortened()
			s.Restart = &restart
		}
	}
	return o
}

func (s *State) shortened() *State {
	if s == nil || s.Digest != "" {
		return s
	}
	text, err := json.Marshal(s) // maps by their keys in order
	if err != nil {
		panic(err)
	}
	h := fnv.New32a()
	h.Write(text)
	return &State{Digest: fmt.Sprintf("%x", h.Sum32())}
}
