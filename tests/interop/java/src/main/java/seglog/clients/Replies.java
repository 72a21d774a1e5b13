package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests that another client replies to. */
final class Replies {
  private static final int LIMIT_MS = 60_000;
  private static final int SHORT_MS = 5_000;

  private Replies() {}

  static Object replied(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer replier = site.producer();
    DefaultMQPushConsumer consumer = site.push(site.name("g"), topic, "*");
    CompletableFuture<Object> reply = new CompletableFuture<>();
    consumer.registerMessageListener(
        (MessageListenerConcurrently)
            (messages, context) -> {
              for (MessageExt message : messages) {
                reply.complete(Facts.outcome(() -> sendReply(replier, message)));
              }
              return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
    consumer.start();
    DefaultMQProducer asking = site.unstartedProducer("asking");
    asking.setInstanceName(site.name("asking"));
    asking.start();
    Message answer = asking.request(request(topic, "ping"), LIMIT_MS);
    CompletableFuture<Object> later = new CompletableFuture<>();
    asking.request(
        request(topic, "other"),
        new RequestCallback() {
          @Override
          public void onSuccess(Message message) {
            later.complete(Facts.body(message));
          }

          @Override
          public void onException(Throwable error) {
            later.complete(Facts.failure(error));
          }
        },
        LIMIT_MS);
    return Map.of(
        "reply", reply.get(1, TimeUnit.MINUTES),
        "answer", Facts.body(answer),
        "answer's properties", Facts.properties(answer),
        "later", later.get(1, TimeUnit.MINUTES));
  }

  private static Message request(String topic, String body) {
    return new Message(topic, body.getBytes(UTF_8));
  }

  private static Object sendReply(DefaultMQProducer replier, MessageExt message) throws Exception {
    byte[] body = ("to " + Facts.body(message)).getBytes(UTF_8);
    SendResult sent = replier.send(MessageUtil.createReplyMessage(message, body));
    return List.of(sent.getSendStatus().name(), sent.getMessageQueue().toString());
  }

  /** Without one who replies, the request ends with its time. */
  static Object alone(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer asking = site.producer();
    asking.send(Sends.message(topic, 1)); // the route is known
    Map<String, Object> failure =
        Facts.failureOf(() -> asking.request(request(topic, "ping"), SHORT_MS));
    return failure.get("type");
  }
}
