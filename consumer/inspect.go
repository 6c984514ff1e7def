package consumer

import (
	"context"
	"fmt"
)

// Inspect asks the brokers how many partitions each topic has; a topic that does not
// exist has none. When no broker can be used the error is the true reason, which the
// library's own error hides.
func Inspect(ctx context.Context, k KafkaConfig, topics []string) (map[string]int, error) {
	c, err := newCluster(k, topics)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.reason(ctx); err != nil {
		return nil, err
	}
	found, err := c.partitions(ctx, topics)
	if err != nil {
		return nil, fmt.Errorf("metadata of %v: %w", topics, err)
	}
	return found, nil
}
