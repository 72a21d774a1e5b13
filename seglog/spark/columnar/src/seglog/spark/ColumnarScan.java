package seglog.spark;

import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonBatch;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** A scan whose partitions are planned and walked by Python, and whose columns are made here from the log. */
final class ColumnarScan implements Scan, Batch {
    /** Option that makes the Python data source return frames; its value is the requested columns as JSON. */
    private static final String FRAME = "frame", FRAMES_OF = "seglog.framesOf";

    /** The source of frames for each source of rows: Spark plans a source once for all its queries. */
    private static final Map<PythonDataSourceV2, PythonDataSourceV2> SOURCES = new WeakHashMap<>();

    private final PythonScan scan;
    private final PythonBatch batch;

    ColumnarScan(PythonScan scan) throws ReflectiveOperationException {
        this.scan = scan;
        String name = (String) Fields.of(scan, "shortName");
        CaseInsensitiveStringMap options = (CaseInsensitiveStringMap) Fields.of(scan, "options");
        PythonDataSourceV2 source = source((PythonDataSourceV2) Fields.of(scan, "ds"), name, options);
        Metadata wanted = new MetadataBuilder().putString(FRAMES_OF, readSchema().json()).build();
        StructType schema = new StructType().add(FRAME, DataTypes.BinaryType, true, wanted);
        batch = new PythonBatch(source, name, schema, options);
    }

    private PythonDataSourceV2 source(PythonDataSourceV2 ofRows, String name, CaseInsensitiveStringMap options)
            throws ReflectiveOperationException {
        synchronized (SOURCES) {
            PythonDataSourceV2 found = SOURCES.get(ofRows);
            if (found == null) {
                found = new PythonDataSourceV2();
                found.setShortName(name);
                Object made = ofRows.getOrCreateDataSourceInPython(name, options, Option.apply(readSchema()));
                Fields.set(found, "dataSourceInPython", made);
                SOURCES.put(ofRows, found);
            }
            return found;
        }
    }

    @Override
    public StructType readSchema() {
        return scan.readSchema();
    }

    @Override
    public String description() {
        return scan.description() + " columnar";
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return scan.supportedCustomMetrics();
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return batch.planInputPartitions();
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new ColumnarReaderFactory(batch.createReaderFactory(), readSchema());
    }
}
