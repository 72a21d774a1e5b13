package seglog.clients;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Sends that the client or the broker refuses. */
final class Refusals {
  private static final int TOO_LONG = (4 << 20) + 1;
  private static final int READ_ONLY = 4;

  private Refusals() {}

  /** Those that the client itself, or a broker that it finds no route at, refuses. */
  static Object ofSends(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    byte[] body = {'x'};
    Map<String, Object> found = new LinkedHashMap<>();
    Map<String, Message> cases = new LinkedHashMap<>();
    cases.put("a name with a space", new Message("no name", body));
    cases.put("a long name", new Message("T".repeat(128), body));
    cases.put("no name", new Message("", body));
    cases.put("no body", new Message(topic, new byte[0]));
    cases.put("a body too long for the client", new Message(topic, new byte[TOO_LONG]));
    cases.put("a topic of the system", new Message("SCHEDULE_TOPIC_XXXX", body));
    cases.forEach(
        (name, message) -> found.put(name, Facts.outcome(() -> producer.send(message))));
    Message late = new Message(topic, body);
    late.setDelayTimeLevel(1);
    found.put("a batch with a delay", Facts.outcome(() -> producer.send(List.of(late))));
    List<Message> apart = List.of(new Message(topic, body), new Message(site.name("U"), body));
    found.put("a batch of two topics", Facts.outcome(() -> producer.send(apart)));
    DefaultMQProducer strict = site.unstartedProducer("Q");
    strict.setCreateTopicKey("nothing");
    strict.start();
    found.put(
        "no such topic", Facts.outcome(() -> strict.send(new Message(site.name("none"), body))));
    return found;
  }

  /** Those that the broker refuses. */
  static Object ofBroker(Site site) throws Exception {
    String topic = site.topic();
    String readOnly = site.topic("read", Site.QUEUES, READ_ONLY);
    DefaultMQProducer producer = site.unstartedProducer("P");
    producer.setMaxMessageSize(2 * TOO_LONG);
    producer.setCompressMsgBodyOverHowmuch(2 * TOO_LONG);
    producer.start();
    byte[] body = {'x'};
    byte[] tooLong = new byte[TOO_LONG];
    new Random(3).nextBytes(tooLong);
    Message wordy = new Message(topic, body);
    wordy.putUserProperty("long", "x".repeat(40_000));
    Map<String, Object> found = new LinkedHashMap<>();
    found.put(
        "no such queue",
        Facts.outcome(() -> producer.send(new Message(topic, body), Site.queue(topic, 9))));
    found.put(
        "a topic to read",
        Facts.outcome(() -> producer.send(new Message(readOnly, body), Site.queue(readOnly, 0))));
    found.put("a topic to read, any queue", Facts.outcome(() -> producer.send(new Message(readOnly, body))));
    found.put("a long body", Facts.outcome(() -> producer.send(new Message(topic, tooLong))));
    found.put("long properties", Facts.outcome(() -> producer.send(wordy)));
    CompletableFuture<Object> async = new CompletableFuture<>();
    producer.send(
        new Message(readOnly, body),
        Site.queue(readOnly, 0),
        new SendCallback() {
          @Override
          public void onSuccess(SendResult sent) {
            async.complete(Facts.of(sent));
          }

          @Override
          public void onException(Throwable error) {
            async.complete(Facts.failure(error));
          }
        });
    found.put("async, a topic to read", async.get(1, TimeUnit.MINUTES));
    return found;
  }
}
