// A client that does to an extender what kube-scheduler does
// (HTTPExtender.send): json.Marshal of ExtenderArgs, a POST on a kept
// connection, json.NewDecoder(resp.Body).Decode; filter with all names, then
// prioritize with those that survived (skipped when fewer than two did).
//
// Several targets are measured in turn, a few calls each, so that a drift of
// the machine hits all of them alike.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"

	"biga.dev/bench/wire"
)

type target struct {
	name, url        string
	client           *http.Client
	dials            int
	filter, priority []time.Duration
	sum              []time.Duration
	survivors        int
	unknown          int
	requests         int
}

// What one target did at one number of names; times in microseconds.
type Result struct {
	Target        string  `json:"target"`
	Names         int     `json:"names"`
	Iterations    int     `json:"iterations"`
	Survivors     int     `json:"survivors"`
	UnknownNames  int     `json:"unknown_names"`
	Connections   int     `json:"connections"`
	Requests      int     `json:"requests"`
	FilterP50     float64 `json:"filter_p50_us"`
	FilterP99     float64 `json:"filter_p99_us"`
	PrioritizeP50 float64 `json:"prioritize_p50_us"`
	PrioritizeP99 float64 `json:"prioritize_p99_us"`
	SumP50        float64 `json:"sum_p50_us"`
	SumP99        float64 `json:"sum_p99_us"`
}

type Report struct {
	Client   string   `json:"client"`
	PodBytes int      `json:"pod_bytes"`
	Results  []Result `json:"results"`
}

func (t *target) connect() {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	t.client = &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			Dial: func(network, address string) (net.Conn, error) {
				t.dials++
				return dialer.Dial(network, address)
			},
			IdleConnTimeout: 90 * time.Second,
		},
	}
}

// As HTTPExtender.send of kube-scheduler does it.
func (t *target) send(verb string, args any, result any) error {
	out, err := json.Marshal(args)
	if err != nil {
		return err
	}
	url := strings.TrimRight(t.url, "/") + "/" + verb
	req, err := http.NewRequest("POST", url, bytes.NewReader(out))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, text)
	}
	return json.NewDecoder(resp.Body).Decode(result)
}

func (t *target) once(pod *wire.Pod, names []string, keep bool) error {
	var found wire.ExtenderFilterResult
	var scores []wire.HostPriority
	start := time.Now()
	err := t.send("filter", wire.ExtenderArgs{Pod: pod, NodeNames: &names}, &found)
	filter := time.Since(start)
	t.requests++
	if err != nil {
		return err
	}
	if found.Error != "" || found.NodeNames == nil {
		return fmt.Errorf("%s: filter answered Error %q, NodeNames %v",
			t.url, found.Error, found.NodeNames)
	}
	left := *found.NodeNames
	t.survivors = len(left)
	if !keep { // in the warm-up, for it takes its time
		t.check(names, left)
	}
	var priority time.Duration
	if len(left) > 1 {
		start = time.Now()
		err = t.send("prioritize", wire.ExtenderArgs{Pod: pod, NodeNames: &left}, &scores)
		priority = time.Since(start)
		t.requests++
		if err != nil {
			return err
		}
		if len(scores) == 0 {
			return fmt.Errorf("%s: prioritize scored nothing", t.url)
		}
	}
	if keep {
		t.filter = append(t.filter, filter)
		t.priority = append(t.priority, priority)
		t.sum = append(t.sum, filter+priority)
	}
	return nil
}

// kube-scheduler refuses an answer with a name that it did not send.
func (t *target) check(sent, left []string) {
	known := make(map[string]bool, len(sent))
	for _, name := range sent {
		known[name] = true
	}
	for _, name := range left {
		if !known[name] {
			t.unknown++
		}
	}
}

func quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	s := append([]time.Duration(nil), d...)
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return float64(s[int(q*float64(len(s)-1)+0.5)].Nanoseconds()) / 1e3
}

func (t *target) result(n int) Result {
	return Result{
		Target: t.name, Names: n, Iterations: len(t.sum),
		Survivors: t.survivors, UnknownNames: t.unknown,
		Connections: t.dials, Requests: t.requests,
		FilterP50: quantile(t.filter, .5), FilterP99: quantile(t.filter, .99),
		PrioritizeP50: quantile(t.priority, .5),
		PrioritizeP99: quantile(t.priority, .99),
		SumP50:        quantile(t.sum, .5), SumP99: quantile(t.sum, .99),
	}
}

// The scheduler starts each cycle at another node, in the same order.
func window(names []string, n, turn int) []string {
	at := turn * 997 % len(names)
	out := make([]string, 0, n)
	for len(out) < n {
		take := len(names) - at
		if take > n-len(out) {
			take = n - len(out)
		}
		out = append(out, names[at:at+take]...)
		at = 0
	}
	return out
}

func measure(ts []*target, pod *wire.Pod, names []string, n, rounds, batch, warmup int) error {
	turn := 0
	for i := 0; i < warmup; i++ {
		for _, t := range ts {
			if err := t.once(pod, window(names, n, turn), false); err != nil {
				return err
			}
		}
		turn++
	}
	for round := 0; round < rounds; round++ {
		for _, t := range ts {
			for i := 0; i < batch; i++ {
				if err := t.once(pod, window(names, n, turn+i), true); err != nil {
					return err
				}
			}
		}
		turn += batch
	}
	return nil
}

func readNames(file, prefix string, n int) ([]string, error) {
	if file == "" {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%s%05d", prefix, i)
		}
		return names, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(string(text))
	if len(names) < n {
		return nil, fmt.Errorf("%s: has %d names, %d are needed", file, len(names), n)
	}
	return names, nil
}

func readPod(file string) (*wire.Pod, int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	var pod wire.Pod
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // what we would not send must not be there
	if err := d.Decode(&pod); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	out, err := json.Marshal(&pod)
	return &pod, len(out), err
}

func run() error {
	podFile := flag.String("pod", "bench/pod.json", "`file` with the pod")
	namesFile := flag.String("names", "", "`file` with node names")
	prefix := flag.String("prefix", "node-", "of made-up names, without --names")
	n := flag.Int("n", 5000, "`names` per request")
	rounds := flag.Int("rounds", 30, "rounds over all targets")
	batch := flag.Int("batch", 10, "iterations per target and round")
	warmup := flag.Int("warmup", 20, "iterations before")
	form := flag.String("form", "json", "`json|tsv` (its columns: bench/bench_client.c)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: client [OPTION]… NAME=URL…\n"+
			"URL is the urlPrefix, like http://127.0.0.1:8701/v1/scheduler")
		flag.PrintDefaults()
	}
	flag.Parse()
	pod, podBytes, err := readPod(*podFile)
	if err != nil {
		return err
	}
	names, err := readNames(*namesFile, *prefix, *n)
	if err != nil {
		return err
	}
	var ts []*target
	for _, arg := range flag.Args() {
		name, url, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: must be NAME=URL", arg)
		}
		t := &target{name: name, url: url}
		t.connect()
		ts = append(ts, t)
	}
	if len(ts) == 0 {
		return fmt.Errorf("no target: give at least one NAME=URL")
	}
	if err := measure(ts, pod, names, *n, *rounds, *batch, *warmup); err != nil {
		return err
	}
	report := Report{Client: "go", PodBytes: podBytes}
	for _, t := range ts {
		report.Results = append(report.Results, t.result(*n))
	}
	if *form == "tsv" {
		for _, r := range report.Results {
			fmt.Printf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n",
				r.Target, r.Names, r.Iterations, r.Survivors, r.UnknownNames,
				r.Connections, r.Requests, r.FilterP50, r.FilterP99,
				r.PrioritizeP50, r.PrioritizeP99, r.SumP50, r.SumP99)
		}
		return nil
	}
	out, err := json.Marshal(report)
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}
