package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Sends of each kind, what came of them, and what is stored then. */
final class Sends {
  private static final int BIG_BYTES = 1 << 20;
  private static final int SMALL_BYTES = 300_000;

  private Sends() {}

  static Message message(String topic, int number) {
    return new Message(topic, "A", "key" + number, ("m" + number).getBytes(UTF_8));
  }

  static Object alone(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    List<Object> sent = new ArrayList<>();
    for (int number = 0; number < 8; number++) {
      Message message = new Message(topic, "A", "k" + number + " other", ("m" + number).getBytes(UTF_8));
      message.setFlag(number);
      message.putUserProperty("colour", "red");
      message.putUserProperty("größe", "groß " + number);
      message.setBuyerId("buyer");
      message.setWaitStoreMsgOK(number % 2 == 0);
      sent.add(Facts.of(producer.send(message, Site.queue(topic, number % Site.QUEUES))));
    }
    return Map.of("sent", sent, "stored", Facts.ofQueues(site.stored(topic, Site.QUEUES, 8)));
  }

  /** The queues that the producer itself chooses begin anywhere. */
  static Object anywhere(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    List<String> status = new ArrayList<>();
    for (int number = 0; number < 12; number++) {
      status.add(producer.send(message(topic, number)).getSendStatus().name());
    }
    List<Integer> sizes =
        site.stored(topic, Site.QUEUES, 12).values().stream().map(List::size).toList();
    return Map.of("status", status, "sizes", sizes);
  }

  static Object newTopic(Site site) throws Exception {
    String topic = site.name("new");
    DefaultMQProducer producer = site.unstartedProducer("P");
    producer.setDefaultTopicQueueNums(3);
    producer.start();
    SendResult sent = producer.send(message(topic, 1));
    site.await("3 queues", () -> producer.fetchPublishMessageQueues(topic).size() == 3);
    List<String> queues =
        producer.fetchPublishMessageQueues(topic).stream().map(MessageQueue::toString).sorted().toList();
    int count = site.stored(topic, 3, 1).values().stream().mapToInt(List::size).sum();
    return Map.of("status", sent.getSendStatus(), "queues", queues, "count", count);
  }

  static Object async(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    Queue<Object> answers = new ConcurrentLinkedQueue<>();
    SendCallback callback =
        new SendCallback() {
          @Override
          public void onSuccess(SendResult sent) {
            answers.add(sent.getSendStatus() + " " + sent.getQueueOffset());
          }

          @Override
          public void onException(Throwable error) {
            answers.add(Facts.failure(error));
          }
        };
    for (int number = 0; number < 20; number++) {
      producer.send(message(topic, number), Site.queue(topic, 1), callback);
    }
    site.await("20 answers", () -> answers.size() == 20);
    List<String> sorted = answers.stream().map(Object::toString).sorted().toList();
    List<String> bodies =
        site.stored(topic, Site.QUEUES, 20).get(1).stream().map(Facts::body).sorted().toList();
    return Map.of("answers", sorted, "bodies", bodies);
  }

  static Object oneway(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    for (int number = 0; number < 5; number++) {
      producer.sendOneway(message(topic, number), Site.queue(topic, 2));
    }
    return site.stored(topic, Site.QUEUES, 5).get(2).stream().map(Facts::body).sorted().toList();
  }

  static Object batch(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    List<Message> messages = new ArrayList<>();
    for (int number = 0; number < 16; number++) {
      Message message = message(topic, number);
      message.putUserProperty("number", "" + number);
      messages.add(message);
    }
    SendResult first = producer.send(messages, Site.queue(topic, 3));
    List<Message> more = List.of(message(topic, 16), message(topic, 17));
    SendResult second = producer.send(more, Site.queue(topic, 3));
    return Map.of(
        "sent", List.of(Facts.of(first), Facts.of(second)),
        "stored", Facts.ofQueues(site.stored(topic, Site.QUEUES, 18)));
  }

  static Object selected(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    List<Object> sent = new ArrayList<>();
    for (int number = 0; number < 12; number++) {
      String order = "order " + number % 3;
      sent.add(
          Facts.of(producer.send(message(topic, number), new SelectMessageQueueByHash(), order)));
    }
    return Map.of("sent", sent, "stored", Facts.bodiesOf(site.stored(topic, Site.QUEUES, 12)));
  }

  static Object delayed(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    Message message = message(topic, 1);
    message.setDelayTimeLevel(1);
    SendResult sent = producer.send(message, Site.queue(topic, 1));
    // In another queue: how long it takes to send it has no limit.
    producer.send(message(topic, 2), Site.queue(topic, 2));
    Map<Integer, List<org.apache.rocketmq.common.message.MessageExt>> stored =
        site.stored(topic, Site.QUEUES, 2);
    long waited =
        stored.get(1).stream()
            .mapToLong(one -> one.getStoreTimestamp() - one.getBornTimestamp())
            .sum();
    return Map.of(
        "status", sent.getSendStatus(),
        "queue", sent.getMessageQueue().toString(),
        "stored", Facts.ofQueues(stored),
        "hasWaited", waited >= 900);
  }

  static Object big(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    byte[] even = new byte[BIG_BYTES];
    Arrays.fill(even, (byte) 'x');
    byte[] random = new byte[SMALL_BYTES];
    new Random(7).nextBytes(random);
    List<Object> sent = new ArrayList<>();
    for (byte[] body : List.of(even, random)) {
      sent.add(Facts.of(producer.send(new Message(topic, "A", body), Site.queue(topic, 0))));
    }
    return Map.of("sent", sent, "stored", Facts.ofQueues(site.stored(topic, Site.QUEUES, 2)));
  }
}
