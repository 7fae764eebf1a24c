package arag;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.SimpleCollector;
import org.apache.lucene.util.FixedBitSet;

/** A collector of all matching documents, by their numbers in the index, without scores. */
final class Matching extends SimpleCollector {
    private final FixedBitSet documents;
    private int first;

    Matching(int documents) {
        this.documents = new FixedBitSet(documents);
    }

    FixedBitSet documents() {
        return documents;
    }

    @Override
    protected void doSetNextReader(LeafReaderContext leaf) throws IOException {
        first = leaf.docBase;
    }

    @Override
    public ScoreMode scoreMode() {
        return ScoreMode.COMPLETE_NO_SCORES;
    }

    @Override
    public void collect(int document) {
        documents.set(first + document);
    }

    @Override
    public void collectRange(int from, int end) {
        documents.set(first + from, first + end);
    }
}
