package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func message(topic string, number, queueID int) *primitive.Message {
	one := primitive.NewMessage(topic, fmt.Append(nil, "m", number)).WithTag("A")
	one.WithKeys([]string{fmt.Sprint("key", number)})
	one.Queue = queue(topic, queueID)
	return one
}

func alone(at *site) any {
	topic, by := at.topic(), at.producer()
	sent := []facts{}
	for number := range 8 {
		one := message(topic, number, number%queueCount)
		one.Flag = int32(number)
		one.WithProperty("größe", "groß")
		sent = append(sent, factsOfSend(by.SendSync(background, one)))
	}
	return facts{"sent": sent, "stored": at.stored(topic, 2, 2, 2, 2)}
}

func async(at *site) any {
	topic, by := at.topic(), at.producer()
	var all sync.WaitGroup
	var lock sync.Mutex
	answers := []string{}
	for number := range 20 {
		all.Add(1)
		check(by.SendAsync(background, func(_ context.Context, sent *primitive.SendResult, err error) {
			defer all.Done()
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				answers = append(answers, err.Error())
				return
			}
			answers = append(answers, fmt.Sprint(sent.Status, " ", sent.QueueOffset))
		}, message(topic, number, 1)))
	}
	all.Wait()
	slices.Sort(answers)
	return facts{"answers": answers, "bodies": bodiesOf(at.stored(topic, 0, 20)[1])}
}

func bodiesOf(stored []facts) []string {
	bodies := []string{}
	for _, one := range stored {
		bodies = append(bodies, one["body"].(string))
	}
	slices.Sort(bodies)
	return bodies
}

func oneway(at *site) any {
	topic, by := at.topic(), at.producer()
	for number := range 5 {
		check(by.SendOneWay(background, message(topic, number, 2)))
	}
	return bodiesOf(at.stored(topic, 0, 0, 5)[2])
}

func batch(at *site) any {
	topic, by := at.topic(), at.producer()
	messages := []*primitive.Message{}
	for number := range 16 {
		messages = append(messages, message(topic, number, 3))
	}
	sent := factsOfSend(by.SendSync(background, messages...))
	return facts{"sent": sent, "stored": at.stored(topic, 0, 0, 0, 16)}
}

func big(at *site) any {
	topic, by := at.topic(), at.producer()
	even, random := bytes.Repeat([]byte{'x'}, 1<<20), make([]byte, 300_000)
	rand.New(rand.NewSource(7)).Read(random)
	sent := []facts{}
	for _, body := range [][]byte{even, random} {
		one := message(topic, 0, 0)
		one.Body = body
		sent = append(sent, factsOfSend(by.SendSync(background, one)))
	}
	return facts{"sent": sent, "stored": at.stored(topic, 2)}
}

func selected(at *site) any {
	topic := at.topic()
	by := at.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	sent := []facts{}
	for number := range 12 {
		one := message(topic, number, 0).WithShardingKey(fmt.Sprint("order ", number%3))
		sent = append(sent, factsOfSend(by.SendSync(background, one)))
	}
	return sent
}

func delayed(at *site) any {
	topic, by := at.topic(), at.producer()
	sent := factsOfSend(by.SendSync(background, message(topic, 1, 1).WithDelayTimeLevel(1)))
	delete(sent, "queueOffset") // in the queue of the level, which others use
	// In another queue: how long it takes to send it has no limit.
	must(by.SendSync(background, message(topic, 2, 2)))
	return facts{"sent": sent, "stored": at.stored(topic, 0, 1, 1)}
}

func refused(at *site) any {
	topic, by := at.topic(), at.producer(producer.WithRetry(0))
	strict := at.producer(producer.WithRetry(0), producer.WithCreateTopicKey("nothing"),
		producer.WithGroupName(at.name("Q")), producer.WithInstanceName(at.name("Q")))
	return facts{
		"no such queue":         factsOfSend(by.SendSync(background, message(topic, 0, 9))),
		"a topic of the system": factsOfSend(by.SendSync(background, message("SCHEDULE_TOPIC_XXXX", 0, 0))),
		"a name with a space":   factsOfSend(by.SendSync(background, message("no name", 0, 0))),
		"no such topic":         factsOfSend(strict.SendSync(background, message(at.name("none"), 0, 0))),
	}
}

func topics(at *site) any {
	topic, by := at.topic(), at.admin()
	isListed := func() bool {
		return slices.Contains(must(by.FetchAllTopicList(background)).TopicList, topic)
	}
	at.await("its name in the list", isListed)
	queues := []string{}
	for _, each := range must(by.FetchPublishMessageQueues(background, topic)) {
		queues = append(queues, each.String())
	}
	slices.Sort(queues)
	groups, err := by.GetAllSubscriptionGroup(background, at.broker, 10*time.Second)
	check(err)
	_, isGroup := groups.SubscriptionGroupTable["SELF_TEST_C_GROUP"]
	check(by.DeleteTopic(background, admin.WithTopicDelete(topic), admin.WithBrokerAddrDelete(at.broker),
		admin.WithNameSrvAddr([]string{at.nameServer})))
	at.await("its end", func() bool { return !isListed() })
	return facts{"queues": queues, "isGroup": isGroup}
}
