// Sends what kube-schedulers once sent (raw requests, one a file) to an
// extender and takes its answers as kube-scheduler does: json.NewDecoder into
// the types of the verb.  TAP lines.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"biga.dev/bench/wire"
)

type bindingResult struct{ Error string }

type metaVictims struct {
	Pods             []struct{ UID string }
	NumPDBViolations int64
}

type preemptionResult struct {
	NodeNameToMetaVictims map[string]*metaVictims
}

// The names of the nodes that the request is about.
func asked(body []byte) (map[string]bool, error) {
	var args struct {
		Nodes                                    *wire.NodeList
		NodeNames                                *[]string
		NodeNameToVictims, NodeNameToMetaVictims map[string]json.RawMessage
		Node                                     string
	}
	names := map[string]bool{}
	if err := json.Unmarshal(body, &args); err != nil {
		return nil, err
	}
	if args.Nodes != nil {
		for _, n := range args.Nodes.Items {
			names[n.Metadata.Name] = true
		}
	}
	if args.NodeNames != nil {
		for _, n := range *args.NodeNames {
			names[n] = true
		}
	}
	for n := range args.NodeNameToVictims {
		names[n] = true
	}
	for n := range args.NodeNameToMetaVictims {
		names[n] = true
	}
	return names, nil
}

// Decodes the answer and returns the nodes that it names.
func decode(verb string, answer *json.Decoder) ([]string, error) {
	var named []string
	switch verb {
	case "filter":
		var r wire.ExtenderFilterResult
		if err := answer.Decode(&r); err != nil {
			return nil, err
		}
		if r.Nodes == nil && r.NodeNames == nil {
			return nil, fmt.Errorf("both lists are null")
		}
		if r.NodeNames != nil {
			named = append(named, *r.NodeNames...)
		}
		if r.Nodes != nil {
			for _, n := range r.Nodes.Items {
				named = append(named, n.Metadata.Name)
			}
		}
		for n := range r.FailedNodes {
			named = append(named, n)
		}
		for n := range r.FailedAndUnresolvableNodes {
			named = append(named, n)
		}
	case "prioritize":
		var r []wire.HostPriority
		if err := answer.Decode(&r); err != nil {
			return nil, err
		}
		for _, h := range r {
			if h.Score < 0 || h.Score > 10 {
				return nil, fmt.Errorf("score %d", h.Score)
			}
			named = append(named, h.Host)
		}
	case "bind":
		var r bindingResult
		return nil, answer.Decode(&r)
	case "preempt":
		var r preemptionResult
		if err := answer.Decode(&r); err != nil {
			return nil, err
		}
		for n := range r.NodeNameToMetaVictims {
			named = append(named, n)
		}
	default:
		return nil, fmt.Errorf("no such verb")
	}
	return named, nil
}

func replay(prefix, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, body, found := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !found {
		return fmt.Errorf("not a request")
	}
	verb := strings.TrimSuffix(file[strings.LastIndex(file, "_")+1:], ".http")
	names, err := asked(body)
	if err != nil {
		return err
	}
	resp, err := http.Post(prefix+"/"+verb, "application/json",
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	named, err := decode(verb, json.NewDecoder(resp.Body))
	for _, n := range named {
		if !names[n] {
			return fmt.Errorf("node %q was not in the request", n)
		}
	}
	return err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: captures URL-PREFIX FOLDER")
		os.Exit(2)
	}
	files, _ := filepath.Glob(filepath.Join(os.Args[2], "*.http"))
	failed := len(files) == 0
	for i, file := range files {
		name := filepath.Base(file)
		if err := replay(os.Args[1], file); err != nil {
			fmt.Printf("not ok %d - %s: %v\n", i+1, name, err)
			failed = true
		} else {
			fmt.Printf("ok %d - %s\n", i+1, name)
		}
	}
	fmt.Printf("1..%d\n", len(files))
	if failed {
		os.Exit(1)
	}
}
