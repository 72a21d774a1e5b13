package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const bad = "m5"

// sendAll sends messages to all queues in turn; each has a tag and a price.
func (s *site) sendAll(topic string, count int) {
	by := s.producer()
	for number := range count {
		one := message(topic, number, number%queueCount).WithTag(string("ABCD"[number/4%4]))
		one.WithProperty("price", fmt.Sprint(number))
		must(by.SendSync(background, one))
	}
	each := count / queueCount
	s.stored(topic, each, each, each, each)
}

func concurrent(at *site) any { return at.filtered(everything, 40) }

func byTags(at *site) any {
	return at.filtered(consumer.MessageSelector{Type: consumer.TAG, Expression: "A || C"}, 20)
}

func bySQL(at *site) any {
	return at.filtered(consumer.MessageSelector{Type: consumer.SQL92,
		Expression: "price BETWEEN 5 AND 9 OR TAGS = 'D'"}, 13)
}

func (s *site) filtered(selector consumer.MessageSelector, count int) any {
	topic, given, by := s.topic(), &seen{}, s.push("g")
	s.sendAll(topic, 40)
	check(by.Subscribe(topic, selector, given.done))
	check(by.Start())
	s.await(fmt.Sprint(count, " messages"), func() bool { return given.count() >= count })
	return given.bodies()
}

func broadcast(at *site) any {
	topic, all := at.topic(), []*seen{{}, {}}
	at.sendAll(topic, 20)
	for number, given := range all {
		by := at.push(fmt.Sprint("i", number), consumer.WithConsumerModel(consumer.BroadCasting))
		check(by.Subscribe(topic, everything, given.done))
		check(by.Start())
	}
	bodies := [][]string{}
	for _, given := range all {
		at.await("20 messages", func() bool { return given.count() >= 20 })
		bodies = append(bodies, given.bodies())
	}
	return bodies
}

// retries has a message come again, twice, and be a dead letter then.
func retries(at *site) any {
	topic, given := at.topic(), &seen{}
	at.sendAll(topic, 8)
	by := at.push("g", consumer.WithMaxReconsumeTimes(2), consumer.WithConsumeMessageBatchMaxSize(1))
	check(by.Subscribe(topic, everything,
		func(ctx context.Context, more ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			given.add(more...)
			if string(more[0].Body) != bad {
				return consumer.ConsumeSuccess, nil
			}
			if settings, ok := primitive.GetConcurrentlyCtx(ctx); ok {
				settings.DelayLevelWhenNextConsume = 1
			}
			return consumer.ConsumeRetryLater, nil
		}))
	check(by.Start())
	at.await("three attempts", func() bool { return given.count() >= 10 })
	tool := at.admin()
	at.await("a dead letter", func() bool {
		queues, err := tool.FetchPublishMessageQueues(background, "%DLQ%"+at.name("g"))
		return err == nil && len(queues) == 1
	})
	return facts{"attempts": given.attempts(), "dead": at.stored("%DLQ%"+at.name("g"), 1)}
}

// orderly consumes each queue in order, which waits for a message that fails.
func orderly(at *site) any {
	topic, given := at.topic(), &seen{}
	at.sendAll(topic, 40)
	by := at.push("g", consumer.WithConsumerOrder(true), consumer.WithConsumeMessageBatchMaxSize(1),
		consumer.WithSuspendCurrentQueueTimeMillis(100*time.Millisecond))
	failures := 0 // of one queue, which has one listener at a time
	check(by.Subscribe(topic, everything,
		func(_ context.Context, more ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			given.add(more...)
			if string(more[0].Body) == bad && failures < 2 {
				failures++
				return consumer.SuspendCurrentQueueAMoment, nil
			}
			return consumer.ConsumeSuccess, nil
		}))
	check(by.Start())
	at.await("42 attempts", func() bool { return given.count() >= 42 })
	return given.ofQueues()
}

func pulls(at *site) any {
	topic := at.topic()
	at.sendAll(topic, 20)
	by, found := at.pull(topic), facts{}
	for _, from := range []int64{0, 3, 6, 99} {
		pulled, err := by.PullFrom(background, queue(topic, 1), from, 2)
		if err != nil {
			found[fmt.Sprint("from ", from)] = err.Error()
			continue
		}
		bodies := []string{}
		for _, one := range pulled.GetMessageExts() {
			bodies = append(bodies, string(one.Body))
		}
		found[fmt.Sprint("from ", from)] = facts{"status": pulled.Status, "next": pulled.NextBeginOffset,
			"range": []int64{pulled.MinOffset, pulled.MaxOffset}, "bodies": bodies}
	}
	return found
}

// replies has a consumer reply to a request.
func replies(at *site) any {
	topic, by := at.topic(), at.push("g")
	replier := at.producer(producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	check(by.Subscribe(topic, everything,
		func(_ context.Context, more ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range more {
				reply, err := consumer.CreateReplyMessage(one, nil) // it forgets the body that it is given
				if err == nil {
					reply.Body = fmt.Append(nil, "to ", string(one.Body))
					_, err = replier.SendSync(background, reply)
				}
				if err != nil {
					return consumer.ConsumeRetryLater, err
				}
			}
			return consumer.ConsumeSuccess, nil
		}))
	check(by.Start())
	asking := at.producer(producer.WithGroupName(at.name("asking")), producer.WithInstanceName(at.name("asking")))
	answer := must(asking.Request(background, at.limit, message(topic, 1, 0)))
	return facts{"body": string(answer.Body), "properties": propertiesOf(answer)}
}
