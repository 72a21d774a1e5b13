package seglog.clients;

import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** What releases of the client have in different packages. */
final class Models {
  private Models() {}

  /** Has each consumer of a group be given every message. */
  static void broadcast(DefaultMQPushConsumer consumer) throws ReflectiveOperationException {
    Method setter =
        Arrays.stream(DefaultMQPushConsumer.class.getMethods())
            .filter(method -> method.getName().equals("setMessageModel"))
            .findFirst()
            .orElseThrow();
    for (Object model : setter.getParameterTypes()[0].getEnumConstants()) {
      if (model.toString().equals("BROADCASTING")) {
        setter.invoke(consumer, model);
      }
    }
  }
}
