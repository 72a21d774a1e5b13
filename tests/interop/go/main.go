// Command clients has RocketMQ's Go client do scenarios at a broker, some at a time, and prints a line of
// JSON for what came of each: clients NAME_SERVER BROKER LIMIT_S [SCENARIO]...
//
// What it prints does not depend on timing, and holds no ids, times or addresses.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const atATime = 6

type scenario struct {
	name string
	run  func(*site) any
}

// Those that take long are first.
var scenarios = []scenario{
	{"retries", retries},
	{"orderly", orderly},
	{"concurrent", concurrent},
	{"tags", byTags},
	{"sql", bySQL},
	{"broadcast", broadcast},
	{"delayed", delayed},
	{"replies", replies},
	{"pulls", pulls},
	{"alone", alone},
	{"async", async},
	{"oneway", oneway},
	{"batch", batch},
	{"big", big},
	{"selected", selected},
	{"refused", refused},
	{"topics", topics},
}

type line struct {
	Scenario string `json:"scenario"`
	Outcome  any    `json:"outcome,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

func main() {
	seconds, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	limit := time.Duration(seconds) * time.Second
	chosen := os.Args[4:]
	var all sync.WaitGroup
	free := make(chan struct{}, atATime)
	lines := make(chan line)
	for _, each := range scenarios {
		if len(chosen) > 0 && !slices.Contains(chosen, each.name) {
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			free <- struct{}{}
			lines <- do(each, limit)
			<-free
		}()
	}
	go func() {
		all.Wait()
		close(lines)
	}()
	printed := json.NewEncoder(os.Stdout)
	for one := range lines {
		if err := printed.Encode(one); err != nil {
			panic(err)
		}
	}
}

func do(each scenario, limit time.Duration) (found line) {
	found.Scenario = each.name
	at := &site{scenario: each.name, nameServer: os.Args[1], broker: os.Args[2], limit: limit}
	defer func() {
		if reason := recover(); reason != nil {
			found.Failure = fmt.Sprint(reason)
		}
	}()
	found.Outcome = each.run(at)
	return found
}
