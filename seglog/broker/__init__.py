"""A RocketMQ broker over a message store: topics, offsets, queue locks and the requests about them."""
