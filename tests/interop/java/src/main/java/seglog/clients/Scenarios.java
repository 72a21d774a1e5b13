package seglog.clients;

import java.util.LinkedHashMap;
import java.util.Map;

/** Scenarios by their names; those that take long are first. */
final class Scenarios {
  private Scenarios() {}

  static Map<String, Scenario> all() {
    Map<String, Scenario> all = new LinkedHashMap<>();
    all.put("retries", Retries::concurrent);
    all.put("thrown", Retries::thrown);
    all.put("sent-back", Retries::sentBackByHand);
    all.put("orderly-dead", Retries::orderlyDead);
    all.put("orderly", Retries::orderly);
    all.put("shared", Pushes::shared);
    all.put("broker-shared", Assignments::shared);
    all.put("modes", Assignments::modes);
    all.put("concurrent", Pushes::concurrent);
    all.put("demo", Demo::quickstart);
    all.put("tags", Pushes::byTags);
    all.put("broadcast", Pushes::broadcast);
    all.put("beginnings", Pushes::beginnings);
    all.put("sql", Pushes::bySql);
    all.put("wrong-conditions", Pushes::wrongConditions);
    all.put("lite", Pulls::lite);
    all.put("lite-again", Pulls::liteAgain);
    all.put("lite-assigned", Pulls::liteAssigned);
    all.put("pulls", Pulls::statuses);
    all.put("held", Pulls::held);
    all.put("replies", Replies::replied);
    all.put("no-reply", Replies::alone);
    all.put("delayed", Sends::delayed);
    all.put("alone", Sends::alone);
    all.put("anywhere", Sends::anywhere);
    all.put("new-topic", Sends::newTopic);
    all.put("async", Sends::async);
    all.put("oneway", Sends::oneway);
    all.put("batch", Sends::batch);
    all.put("selected", Sends::selected);
    all.put("big", Sends::big);
    all.put("refused", Refusals::ofSends);
    all.put("refused-by-broker", Refusals::ofBroker);
    all.put("messages", Queries::ofMessages);
    all.put("queues", Queries::ofQueues);
    return all;
  }
}
