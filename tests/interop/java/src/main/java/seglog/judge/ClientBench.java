package seglog.judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's own client at work, for {@code python -m perf.bench_client}, {@code
 * perf.bench_server} and {@code perf.bench_consume}, whose words it speaks: see {@code
 * perf/clients/child.py}. A line of standard input is a piece of work; it is done once to warm up,
 * then said to be {@code ready}, done again, and {@code over}.
 */
public final class ClientBench {
  private static final Set<String> SENDS = Set.of("send", "together", "flight", "batch", "paced");
  private static final int IN_FLIGHT = 128;
  private static final int BATCH = 128;
  private static final long PACE_NANOS = 2_000_000;
  private static final String SENT_AT = "sentAt";
  private static final int LIMIT_SECONDS = 120;
  private static final int SEND_TIMEOUT_MS = 10_000;

  private final BufferedReader lines;
  private final Map<String, String> work = new HashMap<>();
  private final int count;
  private final int senders;
  private final int bodyBytes;
  private final int batch;

  private DefaultMQProducer producer;
  private DefaultMQPushConsumer consumer;
  private int groups;
  private int paced;
  private ConcurrentLinkedQueue<byte[]> seen;
  private AtomicInteger seenCount;
  private volatile long firstNanos;
  private volatile long lastNanos;
  private Latencies latencies;

  private ClientBench(BufferedReader lines, String line) {
    this.lines = lines;
    for (String pair : line.split(" ")) {
      String[] parts = pair.split("=", 2);
      work.put(parts[0], parts[1]);
    }
    count = Integer.parseInt(work.get("messages"));
    senders = Integer.parseInt(work.get("senders"));
    bodyBytes = Integer.parseInt(work.get("body"));
    batch = Integer.parseInt(work.get("batch"));
  }

  /** Does what comes until standard input ends. */
  public static void main(String[] args) throws Exception {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      new ClientBench(lines, line).run();
    }
    Runtime.getRuntime().halt(0);
  }

  private void run() throws Exception {
    if (isSend()) {
      producer = new DefaultMQProducer(work.get("name"));
      producer.setNamesrvAddr(work.get("target"));
      producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
      producer.start();
    }
    work();
    check();
    sayAndWait("ready");
    double seconds = work();
    sayAndWait("over");
    check();
    if (producer != null) {
      producer.shutdown();
    }
    Map<String, Object> found = new HashMap<>();
    found.put("messages", count);
    found.put("wall_s", seconds);
    found.put("p50_us", latencies.micros(0.5));
    found.put("p99_us", latencies.micros(0.99));
    say(Json.print(found));
  }

  private boolean isSend() {
    return SENDS.contains(work.get("kind"));
  }

  /** Returns the seconds from the first message to the last. */
  private double work() throws Exception {
    latencies = new Latencies();
    return switch (work.get("kind")) {
      case "send" -> sendAlone();
      case "together" -> sendTogether();
      case "flight" -> sendInFlight();
      case "batch" -> sendBatches();
      case "paced" -> sendPaced();
      case "consume", "orderly" -> consume();
      default -> throw new IllegalArgumentException(work.get("kind"));
    };
  }

  private double sendAlone() throws Exception {
    long begun = System.nanoTime();
    for (int number = 0; number < count; number++) {
      send(number, latencies);
    }
    return secondsSince(begun);
  }

  private double sendTogether() throws Exception {
    long begun = System.nanoTime();
    AtomicReference<Exception> failure = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    List<Latencies> taken = new ArrayList<>();
    for (int first = 0; first < senders; first++) {
      int from = first;
      Latencies own = new Latencies();
      taken.add(own);
      Thread thread =
          new Thread(
              () -> {
                try {
                  for (int number = from; number < count; number += senders) {
                    send(number, own);
                  }
                } catch (Exception error) {
                  failure.set(error);
                }
              });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure.get() != null) {
      throw failure.get();
    }
    double seconds = secondsSince(begun);
    taken.forEach(latencies::addAll);
    return seconds;
  }

  private double sendInFlight() throws Exception {
    long begun = System.nanoTime();
    Semaphore free = new Semaphore(IN_FLIGHT);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    SendCallback callback =
        new SendCallback() {
          @Override
          public void onSuccess(SendResult result) {
            free.release();
          }

          @Override
          public void onException(Throwable error) {
            failure.set(error);
            free.release();
          }
        };
    for (int number = 0; number < count; number++) {
      free.acquire();
      producer.send(message(number), callback);
    }
    if (!free.tryAcquire(IN_FLIGHT, LIMIT_SECONDS, TimeUnit.SECONDS) || failure.get() != null) {
      throw new IllegalStateException("a send was not answered", failure.get());
    }
    return secondsSince(begun);
  }

  private double sendBatches() throws Exception {
    long begun = System.nanoTime();
    for (int first = 0; first < count; first += BATCH) {
      List<Message> batch = new ArrayList<>();
      for (int number = first; number < Math.min(first + BATCH, count); number++) {
        batch.add(message(number));
      }
      long sentAt = System.nanoTime();
      SendStatus status = producer.send(batch).getSendStatus();
      if (status != SendStatus.SEND_OK) {
        throw new IllegalStateException("a batch was answered with " + status);
      }
      latencies.add(System.nanoTime() - sentAt);
    }
    return secondsSince(begun);
  }

  /**
   * Sends at a steady pace, and measures from before each call to the listener. The topic has a
   * message already: once that and those of earlier runs have come, the consumer waits for more.
   */
  private double sendPaced() throws Exception {
    CountDownLatch isAtEnd = new CountDownLatch(1 + paced);
    CountDownLatch isWhole = new CountDownLatch(count);
    MessageListenerConcurrently listener =
        (messages, context) -> {
          long now = System.nanoTime();
          for (MessageExt message : messages) {
            String sentAt = message.getUserProperty(SENT_AT);
            if (sentAt == null || Long.parseLong(sentAt) < firstNanos) {
              isAtEnd.countDown();
            } else {
              synchronized (isWhole) {
                latencies.add(now - Long.parseLong(sentAt));
              }
              isWhole.countDown();
            }
          }
          return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    DefaultMQPushConsumer receiver = newConsumer();
    firstNanos = Long.MAX_VALUE; // what an earlier run has sent is no part of this one
    receiver.registerMessageListener(listener);
    receiver.start();
    if (!isAtEnd.await(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException(isAtEnd.getCount() + " earlier messages did not come");
    }
    long begun = System.nanoTime();
    firstNanos = begun;
    for (int number = 0; number < count; number++) {
      long due = begun + number * PACE_NANOS;
      for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
      Message message = message(number);
      message.putUserProperty(SENT_AT, Long.toString(System.nanoTime()));
      producer.send(message);
    }
    boolean came = isWhole.await(LIMIT_SECONDS, TimeUnit.SECONDS);
    receiver.shutdown();
    paced += count;
    if (!came) {
      throw new IllegalStateException(isWhole.getCount() + " of " + count + " did not come");
    }
    return secondsSince(begun);
  }

  private Message message(int number) {
    return new Message(work.get("topic"), "TagA", body(number));
  }

  private void send(int number, Latencies own) throws Exception {
    Message message = message(number);
    long begun = System.nanoTime();
    SendStatus status = producer.send(message).getSendStatus();
    own.add(System.nanoTime() - begun);
    if (status != SendStatus.SEND_OK) {
      throw new IllegalStateException("message " + number + " was answered with " + status);
    }
  }

  private DefaultMQPushConsumer newConsumer() throws Exception {
    DefaultMQPushConsumer made = new DefaultMQPushConsumer(work.get("name") + "-" + groups++);
    made.setNamesrvAddr(work.get("target"));
    made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    made.setConsumeMessageBatchMaxSize(batch);
    made.subscribe(work.get("topic"), "*");
    return made;
  }

  private double consume() throws Exception {
    seen = new ConcurrentLinkedQueue<>();
    seenCount = new AtomicInteger();
    CountDownLatch isWhole = new CountDownLatch(1);
    consumer = newConsumer();
    if (work.get("kind").equals("consume")) {
      consumer.registerMessageListener(
          (MessageListenerConcurrently)
              (messages, context) -> {
                take(messages, isWhole);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
              });
    } else {
      consumer.registerMessageListener(
          (MessageListenerOrderly)
              (messages, context) -> {
                take(messages, isWhole);
                return ConsumeOrderlyStatus.SUCCESS;
              });
    }
    consumer.start();
    if (!isWhole.await(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException(seen.size() + " of " + count + " messages came");
    }
    return (lastNanos - firstNanos) / 1e9;
  }

  private void take(List<MessageExt> messages, CountDownLatch isWhole) {
    for (MessageExt message : messages) {
      seen.add(message.getBody());
      int number = seenCount.incrementAndGet();
      if (number == 1) {
        firstNanos = System.nanoTime();
      }
      if (number == count) {
        lastNanos = System.nanoTime();
        isWhole.countDown();
      }
    }
  }

  /** Each message was given once, as it was sent. */
  private void check() {
    if (consumer == null) {
      return;
    }
    consumer.shutdown();
    Set<String> wanted = new HashSet<>();
    for (int number = 0; number < count; number++) {
      wanted.add(new String(body(number), StandardCharsets.ISO_8859_1));
    }
    Set<String> found = new HashSet<>();
    for (byte[] body : seen) {
      found.add(new String(body, StandardCharsets.ISO_8859_1));
    }
    if (seen.size() != count || !found.equals(wanted)) {
      throw new IllegalStateException(
          seen.size() + " messages were given, " + found.size() + " different ones, of " + count);
    }
    seen = null;
  }

  /** Returns a body as {@code perf/clients/work.py} makes it. */
  private byte[] body(int number) {
    byte[] body = new byte[bodyBytes];
    Arrays.fill(body, (byte) 'x');
    int left = number;
    for (int at = 7; at >= 0; at--) {
      body[at] = (byte) ('0' + left % 10);
      left /= 10;
    }
    return body;
  }

  private static double secondsSince(long begun) {
    return (System.nanoTime() - begun) / 1e9;
  }

  private void sayAndWait(String word) throws IOException {
    say(word);
    lines.readLine();
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
