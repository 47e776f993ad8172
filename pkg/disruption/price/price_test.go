package price

import (
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

func TestReadFile(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{"lines", "instance_type,zone,capacity_type,usd_per_hour\nm-4x, z1, spot, 0.1 # cheap\n\nm-4x,*,on-demand,0.2\n", ""},
		{"metrics", "# HELP x\n" + OfferingPrice + "{instance_type=\"m-4x\",capacity_type=\"spot\",zone=\"z1\"} 0.1\n", ""},
		{"metrics without prices", "karpenter_build_info{version=\"1\"} 1\n", "no series"},
		{"nothing", "# only words\n", "no price in it"},
		{"three columns", "m-4x,z1,0.1\n", "line 1: "},
		{"columns exchanged", "m-4x,spot,z1,0.1\n", "capacity type \"z1\""},
		{"no number", "\nm-4x,z1,spot,cheap\n", "line 2: \"cheap\" is no price"},
		{"endless", "m-4x,z1,spot,Inf\n", "is no price"},
		{"below nothing", "m-4x,z1,spot,-1\n", "is no price"},
		{"twice", "m-4x,z1,spot,1\nm-4x,z1,spot,2\n", "has a price already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			types, err := ReadFile(c.text)
			switch {
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong == "" && types["m-4x"][disruption.Offering{Zone: "z1", CapacityType: "spot"}] != 0.1:
				t.Errorf("got %v", types)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("error %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestReadMetrics(t *testing.T) {
	m, err := ReadMetrics(BuildInfo + "{version=\"1.14.3\"} 1\n" + PoolCost + "{nodepool=\"a\"} 0.8\n" + PoolCost + "{nodepool=\"b\"} NaN\n" + StateSynced + " 0\n" +
		OfferingPrice + "{instance_type=\"r\",capacity_type=\"reserved\",zone=\"z\"} 0\n" + // made up: nothing is reserved
		OfferingPrice + "{instance_type=\"q\",capacity_type=\"reserved\",zone=\"z\"} 0\n" + OfferingAvailable + "{instance_type=\"q\",capacity_type=\"reserved\",zone=\"z\"} 1\n" +
		OfferingPrice + "{instance_type=\"broken\n" + "other_metric{x=\"}\"} 1\n")
	if err == nil || !strings.Contains(err.Error(), "line 8") {
		t.Errorf("error %v", err)
	}
	if m.Version != "1.14.3" || len(m.PoolCosts) != 1 || m.PoolCosts["a"] != 0.8 || m.Synced == nil || *m.Synced || m.Types["r"] != nil || m.Types["q"] == nil {
		t.Errorf("got %+v", m)
	}
}

func FuzzReadMetrics(f *testing.F) {
	f.Add(OfferingPrice + "{instance_type=\"a\\\"b\",capacity_type=\"spot\",zone=\"z\"} 1e3 1700000000")
	f.Add("m-4x,z1,spot,0.1")
	f.Fuzz(func(t *testing.T, text string) {
		m, _ := ReadMetrics(text)
		types, _ := ReadFile(text)
		for _, list := range []disruption.InstanceTypes{m.Types, types} {
			for _, offerings := range list {
				for _, price := range offerings {
					if !isPrice(price) {
						t.Errorf("price %v", price)
					}
				}
			}
		}
	})
}
