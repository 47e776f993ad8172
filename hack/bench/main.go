// Command bench runs two commands in turn and compares their median times.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	var (
		runs = flag.Int("runs", 30, "runs of each command, after one that is not counted")
		a    = flag.String("a", "", "command, split at blanks")
		b    = flag.String("b", "", "command that it is compared with")
		most = flag.Float64("max", 0, "fail if the median of a is more than this many times that of b")
	)
	flag.Parse()
	if err := bench(*runs, strings.Fields(*a), strings.Fields(*b), *most); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(runs int, a, b []string, most float64) error {
	if runs < 1 || len(a) == 0 || len(b) == 0 {
		return errors.New("-runs, -a and -b are needed")
	}
	var timesA, timesB []time.Duration
	for i := range runs + 1 {
		da, err := elapsed(a)
		if err != nil {
			return err
		}
		db, err := elapsed(b)
		if err != nil {
			return err
		}
		if i > 0 {
			timesA, timesB = append(timesA, da), append(timesB, db)
		}
	}
	ma, mb := median(timesA), median(timesB)
	ratio := float64(ma) / float64(mb)
	fmt.Printf("%8.1f ms  %s\n", ms(ma), strings.Join(a, " "))
	fmt.Printf("%8.1f ms  %s\n", ms(mb), strings.Join(b, " "))
	fmt.Printf("%8.2f     ratio of the medians of %d alternating runs\n", ratio, runs)
	if most > 0 && ratio > most {
		return fmt.Errorf("the ratio is above %g", most)
	}
	return nil
}

func elapsed(argv []string) (time.Duration, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err := cmd.Run()
	return time.Since(start), err
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return (d[(len(d)-1)/2] + d[len(d)/2]) / 2
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
