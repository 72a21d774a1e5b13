package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	brokerName = "broker-a"
	queueCount = 4
)

var background = context.Background()

// site is what a scenario works with: clients of its own, and names that no other scenario has. What fails
// panics, and ends the scenario. Its clients end with the process: to shut them down takes them long.
type site struct {
	scenario   string
	nameServer string
	broker     string
	limit      time.Duration
	readers    int
}

func (s *site) name(what string) string { return "go-" + s.scenario + "-" + what }

func (s *site) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{s.nameServer})
}

// topic makes a topic of four queues; clients find it.
func (s *site) topic() string {
	name := s.name("T")
	by := s.admin()
	check(by.CreateTopic(background, admin.WithTopicCreate(name), admin.WithBrokerAddrCreate(s.broker),
		admin.WithReadQueueNums(queueCount), admin.WithWriteQueueNums(queueCount)))
	s.await("the route of "+name, func() bool {
		queues, err := by.FetchPublishMessageQueues(background, name)
		return err == nil && len(queues) == queueCount
	})
	return name
}

func (s *site) admin() admin.Admin {
	return must(admin.NewAdmin(admin.WithResolver(s.resolver())))
}

// producer returns one that sends to the queue that a message names.
func (s *site) producer(more ...producer.Option) rocketmq.Producer {
	options := append([]producer.Option{
		producer.WithNsResolver(s.resolver()),
		producer.WithGroupName(s.name("P")),
		producer.WithInstanceName(s.name("P")),
		producer.WithSendMsgTimeout(s.limit),
		producer.WithQueueSelector(producer.NewManualQueueSelector()),
	}, more...)
	made := must(rocketmq.NewProducer(options...))
	check(made.Start())
	return made
}

// push returns a consumer that begins at the first message; it is not started.
func (s *site) push(instance string, more ...consumer.Option) rocketmq.PushConsumer {
	options := append([]consumer.Option{
		consumer.WithNsResolver(s.resolver()),
		consumer.WithGroupName(s.name("g")),
		consumer.WithInstance(s.name(instance)),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, more...)
	return must(rocketmq.NewPushConsumer(options...))
}

func (s *site) pull(topic string) rocketmq.PullConsumer {
	s.readers++
	name := s.name(fmt.Sprint("reader", s.readers))
	made := must(rocketmq.NewPullConsumer(
		consumer.WithNsResolver(s.resolver()),
		consumer.WithGroupName(name),
		consumer.WithInstance(name)))
	check(made.Subscribe(topic, everything))
	check(made.Start())
	return made
}

// stored returns what is in the queues of a topic, once each has so many messages. A pull at the end of a
// queue is held, so there is none.
func (s *site) stored(topic string, counts ...int) [][]facts {
	from := s.pull(topic)
	found := make([][]facts, len(counts))
	for id, count := range counts {
		s.await(fmt.Sprint(count, " messages in queue ", id, " of ", topic), func() bool {
			if len(found[id]) < count {
				pulled, err := from.PullFrom(background, queue(topic, id), int64(len(found[id])), 32)
				if err == nil && pulled.Status == primitive.PullFound {
					for _, one := range pulled.GetMessageExts() {
						found[id] = append(found[id], factsOf(one))
					}
				}
			}
			return len(found[id]) >= count
		})
	}
	return found
}

// await returns once something is so.
func (s *site) await(what string, isSo func() bool) {
	for end := time.Now().Add(s.limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if isSo() {
			return
		}
	}
	panic("it did not come to " + what)
}

func queue(topic string, id int) *primitive.MessageQueue {
	return &primitive.MessageQueue{Topic: topic, BrokerName: brokerName, QueueId: id}
}

var everything = consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}

// seen is what listeners were given, in its order.
type seen struct {
	lock     sync.Mutex
	messages []*primitive.MessageExt
}

func (s *seen) add(more ...*primitive.MessageExt) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.messages = append(s.messages, more...)
}

func (s *seen) count() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.messages)
}

// done is a listener that is done with each message at once.
func (s *seen) done(_ context.Context, more ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	s.add(more...)
	return consumer.ConsumeSuccess, nil
}

func (s *seen) bodies() []string {
	return s.sorted(func(one *primitive.MessageExt) string { return string(one.Body) })
}

// attempts returns each attempt of each message.
func (s *seen) attempts() []string {
	return s.sorted(func(one *primitive.MessageExt) string {
		return fmt.Sprint(string(one.Body), " of ", one.Topic, ", ", one.ReconsumeTimes)
	})
}

func (s *seen) sorted(shown func(*primitive.MessageExt) string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	texts := []string{}
	for _, one := range s.messages {
		texts = append(texts, shown(one))
	}
	slices.Sort(texts)
	return texts
}

// ofQueues returns bodies in the order in which they came, queue by queue.
func (s *seen) ofQueues() map[int][]string {
	s.lock.Lock()
	defer s.lock.Unlock()
	queues := map[int][]string{}
	for _, one := range s.messages {
		queues[one.Queue.QueueId] = append(queues[one.Queue.QueueId], string(one.Body))
	}
	return queues
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
