package main

import (
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const longestShown = 100

// facts are what two brokers have in common: no ids, times, addresses, but whether they are there.
type facts map[string]any

var varying = []string{
	"UNIQ_KEY", "ORIGIN_MESSAGE_ID", "DLQ_ORIGIN_MESSAGE_ID", "MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME",
	"CORRELATION_ID", "REPLY_TO_CLIENT", "ARRIVE_TIME", "PUSH_REPLY_TIME",
}

func factsOf(one *primitive.MessageExt) facts {
	return facts{
		"topic":          one.Topic,
		"queue":          one.Queue.String(),
		"queueOffset":    one.QueueOffset,
		"body":           shown(one.Body),
		"bodyCrc":        one.BodyCRC,
		"flag":           one.Flag,
		"sysFlag":        one.SysFlag,
		"reconsumeTimes": one.ReconsumeTimes,
		"properties":     propertiesOf(&one.Message),
	}
}

func propertiesOf(one *primitive.Message) map[string]string {
	found := map[string]string{}
	for name, value := range one.GetProperties() {
		if slices.Contains(varying, name) {
			value = ""
		}
		if name != "__CRC32#" { // of a broker that is set so, as ours is
			found[name] = value
		}
	}
	return found
}

func shown(body []byte) string {
	if len(body) > longestShown {
		return fmt.Sprint(len(body), " bytes, CRC ", crc32.ChecksumIEEE(body))
	}
	return string(body)
}

func factsOfSend(sent *primitive.SendResult, err error) facts {
	if err != nil {
		return facts{"error": err.Error()}
	}
	return facts{
		"status":        sent.Status,
		"queue":         sent.MessageQueue.String(),
		"queueOffset":   sent.QueueOffset,
		"id":            len(sent.MsgID),
		"offsetIds":     len(sent.OffsetMsgID),
		"transactionId": len(sent.TransactionID),
		"region":        sent.RegionID,
		"isTraced":      sent.TraceOn,
	}
}
