package seglog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Makes readers of columns from Python's readers of frames. */
final class ColumnarReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;
    private final PartitionReaderFactory frames;
    private final StructType schema;

    ColumnarReaderFactory(PartitionReaderFactory frames, StructType schema) {
        this.frames = frames;
        this.schema = schema;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("columns are read, not rows");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new ColumnarReader(frames.createReader(partition), schema);
    }
}
