package seglog.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a partition: its frames hold the places of records in the log, or columns that Python made. */
final class ColumnarReader implements PartitionReader<ColumnarBatch> {
    private static final int ROWS = 1, COLUMNS = 2;
    private final PartitionReader<InternalRow> frames;
    private final LogRows rows = new LogRows();
    private final ColumnarBatch ofLog;
    private BufferAllocator allocator;
    private ArrowStreamReader ofPython;
    private ColumnarBatch batch;

    ColumnarReader(PartitionReader<InternalRow> frames, StructType schema) {
        this.frames = frames;
        StructField[] fields = schema.fields();
        ColumnVector[] vectors = new ColumnVector[fields.length];
        for (int i = 0; i < fields.length; i++)
            vectors[i] = MessageVector.of(fields[i], rows);
        ofLog = new ColumnarBatch(vectors);
    }

    @Override
    public boolean next() throws IOException {
        closeColumns();
        if (!frames.next())
            return false;
        byte[] frame = frames.get().getBinary(0);
        ByteBuffer reading = ByteBuffer.wrap(frame).order(ByteOrder.nativeOrder());
        int kind = reading.getInt();
        if (kind == ROWS) {
            ofLog.setNumRows(rows.take(frame, reading));
            batch = ofLog;
        } else if (kind == COLUMNS) {
            batch = columns(frame, reading.position());
        } else {
            throw new IOException("a frame of kind " + kind + ": seglog of another version runs in Python");
        }
        return true;
    }

    private ColumnarBatch columns(byte[] frame, int at) throws IOException {
        if (allocator == null)
            allocator = ArrowUtils.rootAllocator().newChildAllocator("seglog", 0, Long.MAX_VALUE);
        ofPython = new ArrowStreamReader(new ByteArrayInputStream(frame, at, frame.length - at), allocator);
        VectorSchemaRoot root = ofPython.getVectorSchemaRoot();
        ofPython.loadNextBatch();
        ColumnVector[] vectors =
                root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
        return new ColumnarBatch(vectors, root.getRowCount());
    }

    private void closeColumns() throws IOException {
        if (ofPython != null)
            ofPython.close();
        ofPython = null;
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return frames.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
        closeColumns();
        if (allocator != null)
            allocator.close();
        allocator = null;
        frames.close();
    }
}
