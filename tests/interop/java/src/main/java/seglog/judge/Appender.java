package seglog.judge;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/** Appends the messages of a {@link MessageSpec}; an {@code appended} line for each call. */
final class Appender {
  private final DefaultMessageStore store;
  private final Answers answers;

  Appender(DefaultMessageStore store, Answers answers) {
    this.store = store;
    this.answers = answers;
  }

  void append(MessageSpec spec) throws Exception {
    if (spec.batch) {
      send(spec, spec.first, store.putMessages(batch(spec)));
      return;
    }
    if (spec.innerBatch) {
      send(spec, spec.first, store.putMessage(innerBatch(spec)));
      return;
    }
    for (int number = spec.first; number < spec.first + spec.count; number++) {
      send(spec, number, store.putMessage(single(spec, number)));
    }
  }

  private static MessageExtBrokerInner single(MessageSpec spec, int number) throws Exception {
    MessageExtBrokerInner message = new MessageExtBrokerInner();
    spec.fill(message);
    message.setBody(spec.sentBody(number));
    MessageAccessor.setProperties(message, spec.properties(number));
    message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
    message.setTagsCode(
        MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, spec.tags));
    return message;
  }

  private static MessageExtBatch batch(MessageSpec spec) throws Exception {
    MessageExtBatch batch = new MessageExtBatch();
    spec.fill(batch);
    batch.setBody(batchBody(spec));
    return batch;
  }

  /** As the broker makes it: the number of messages stated, the body as the client sent it. */
  private static MessageExtBrokerInner innerBatch(MessageSpec spec) throws Exception {
    MessageExtBrokerInner message = single(spec, spec.first);
    message.setBody(batchBody(spec));
    int flags = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG;
    message.setSysFlag(message.getSysFlag() | flags);
    MessageAccessor.putProperty(
        message, MessageConst.PROPERTY_INNER_NUM, Integer.toString(spec.count));
    message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
    return message;
  }

  private static byte[] batchBody(MessageSpec spec) {
    List<Message> messages = new ArrayList<>();
    for (int number = spec.first; number < spec.first + spec.count; number++) {
      Message message = new Message(spec.topic, spec.body(number));
      message.setFlag(spec.flag);
      MessageAccessor.setProperties(message, new LinkedHashMap<>(spec.properties(number)));
      messages.add(message);
    }
    return MessageDecoder.encodeMessages(messages);
  }

  private void send(MessageSpec spec, int number, PutMessageResult result) {
    Answers.Line line =
        answers
            .line("appended")
            .put("topic", spec.topic)
            .put("queueId", spec.queueId)
            .put("number", number)
            .put("status", result.getPutMessageStatus().toString());
    AppendMessageResult appended = result.getAppendMessageResult();
    if (appended != null) {
      line.put("appendStatus", appended.getStatus().toString())
          .put("queueOffset", appended.getLogicsOffset())
          .put("count", appended.getMsgNum())
          .put("phyOffset", appended.getWroteOffset())
          .put("sizeBytes", appended.getWroteBytes())
          .put("storeTimestamp", appended.getStoreTimestamp())
          .put("messageId", appended.getMsgId());
    }
    line.send();
  }
}
