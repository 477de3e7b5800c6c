// The smallest Go extender: it reads what kube-scheduler sends, decides
// nothing, and answers.  Biga is measured beside it.
//
// It marshals before it writes, so that the answer has a Content-Length and
// the scheduler keeps its connection; with json.NewEncoder(w) (--stream) the
// last chunk stays unread and the connection is dropped.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"biga.dev/bench/wire"
)

var top = flag.Int("top", 0, "answer with the first `K` names (0: all)")
var stream = flag.Bool("stream", false, "encode straight into the reply")

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if *stream {
		_ = json.NewEncoder(w).Encode(value)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func read(w http.ResponseWriter, r *http.Request) (wire.ExtenderArgs, bool) {
	var args wire.ExtenderArgs
	err := json.NewDecoder(r.Body).Decode(&args)
	if err == nil && args.NodeNames == nil {
		err = fmt.Errorf("NodeNames: missing")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return args, false
	}
	return args, true
}

func filter(w http.ResponseWriter, r *http.Request) {
	args, ok := read(w, r)
	if !ok {
		return
	}
	names := *args.NodeNames
	if *top > 0 && len(names) > *top {
		names = names[:*top]
	}
	answer(w, wire.ExtenderFilterResult{NodeNames: &names})
}

func prioritize(w http.ResponseWriter, r *http.Request) {
	args, ok := read(w, r)
	if !ok {
		return
	}
	scores := make([]wire.HostPriority, len(*args.NodeNames))
	for i, name := range *args.NodeNames {
		scores[i] = wire.HostPriority{Host: name, Score: int64(i % 11)}
	}
	answer(w, scores)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`address:port`")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	http.HandleFunc("/v1/scheduler/filter", filter)
	http.HandleFunc("/v1/scheduler/prioritize", prioritize)
	fmt.Fprintln(os.Stderr, http.Serve(l, nil))
	os.Exit(1)
}
