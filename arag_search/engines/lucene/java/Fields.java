package arag;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.PriorityQueue;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.SimpleCollector;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.NumericUtils;

/**
 * The values of fields in the documents that match a query, exactly. They are read from terms,
 * points and norms, in time linear in the number of values of the field (without a query and
 * deletions, in the number of distinct values), and in space of a bit per document.
 */
final class Fields {
    private final DirectoryReader reader;
    private final Limit limit;
    private final FixedBitSet allowed;
    private final DataOutputStream out;

    /** Read the values in the documents that match a query; null stands for all documents. */
    Fields(
            IndexSearcher searcher,
            DirectoryReader reader,
            Limit limit,
            Query query,
            ByteArrayOutputStream out)
            throws IOException {
        this.reader = reader;
        this.limit = limit;
        this.allowed = query == null ? null : new FixedBitSet(Math.max(1, reader.maxDoc()));
        if (query != null) {
            searcher.search(query, new SingleCollector<>(new Matches(allowed)));
        }
        this.out = new DataOutputStream(out);
    }

    /** Write the number of documents. */
    void writeDocuments() throws IOException {
        out.writeLong(allowed == null ? reader.numDocs() : allowed.cardinality());
    }

    /** Write the number of documents with a word in a text field. */
    void writeText(String field) throws IOException {
        long documents = 0;
        for (LeafReaderContext leaf : reader.leaves()) {
            Terms terms = leaf.reader().terms(field);
            if (terms != null && allowed == null) {
                documents += terms.getDocCount();
            } else if (terms != null) {
                documents += withWords(leaf, leaf.reader().getNormValues(field));
            }
        }
        out.writeLong(documents);
    }

    private long withWords(LeafReaderContext leaf, NumericDocValues norms) throws IOException {
        long documents = 0;
        int document = norms.nextDoc();
        for (; document != DocIdSetIterator.NO_MORE_DOCS; document = norms.nextDoc()) {
            // The norm of a text without a word is 0.
            if (allowed.get(leaf.docBase + document) && norms.longValue() != 0L) {
                documents++;
            }
            limit.checkNowAndThen();
        }
        return documents;
    }

    /**
     * Write the number of documents with a term, the number of distinct terms, and the most frequent
     * terms: their number, then the documents, the length and the bytes of iterator.
     */
    void writeTerms(String field, int most) throws IOException {
        FixedBitSet with = allowed == null ? null : new FixedBitSet(allowed.length());
        PriorityQueue<Frequent> frequent = new PriorityQueue<>();
        long distinct = 0;
        Terms terms = MultiTerms.getTerms(reader, field);
        TermsEnum iterator = terms == null ? TermsEnum.EMPTY : terms.iterator();
        PostingsEnum postings = null;
        for (BytesRef term = iterator.next(); term != null; term = iterator.next()) {
            int documents = 0;
            if (allowed == null) {
                documents = iterator.docFreq();
                limit.checkNowAndThen();
            } else {
                postings = iterator.postings(postings, PostingsEnum.NONE);
                documents = count(postings, with);
            }
            if (documents == 0) {
                continue;
            }
            distinct++;
            // Terms come in ascending order, so that the earlier of two equal counts stays.
            if (frequent.size() < most) {
                frequent.add(new Frequent(documents, distinct, BytesRef.deepCopyOf(term)));
            } else if (most > 0 && documents > frequent.peek().documents) {
                frequent.poll();
                frequent.add(new Frequent(documents, distinct, BytesRef.deepCopyOf(term)));
            }
        }
        out.writeLong(with == null ? documentsWith(field) : with.cardinality());
        out.writeLong(distinct);
        Frequent[] best = frequent.toArray(new Frequent[0]);
        Arrays.sort(best);
        out.writeInt(best.length);
        for (int at = best.length - 1; at >= 0; at--) {
            out.writeLong(best[at].documents);
            out.writeInt(best[at].term.length);
            out.write(best[at].term.bytes, best[at].term.offset, best[at].term.length);
        }
    }

    private int count(PostingsEnum postings, FixedBitSet with) throws IOException {
        int documents = 0;
        int document = postings.nextDoc();
        for (; document != DocIdSetIterator.NO_MORE_DOCS; document = postings.nextDoc()) {
            if (allowed.get(document)) {
                documents++;
                with.set(document);
            }
            limit.checkNowAndThen();
        }
        return documents;
    }

    private long documentsWith(String field) throws IOException {
        long documents = 0;
        for (LeafReaderContext leaf : reader.leaves()) {
            Terms terms = leaf.reader().terms(field);
            documents += terms == null ? 0 : terms.getDocCount();
        }
        return documents;
    }

    /**
     * Write the number of documents with a point, and the least and the greatest as sortable longs;
     * these are 0 if there is none.
     */
    void writePoints(String field) throws IOException {
        Range range = new Range();
        for (LeafReaderContext leaf : reader.leaves()) {
            PointValues points = leaf.reader().getPointValues(field);
            if (points == null) {
                continue;
            }
            if (allowed == null) {
                range.documents += points.getDocCount();
                range.add(points.getMinPackedValue());
                range.add(points.getMaxPackedValue());
                continue;
            }
            FixedBitSet with = new FixedBitSet(leaf.reader().maxDoc());
            points.intersect(
                    new Columns.AllPoints() {
                        @Override
                        public void visit(int document, byte[] packed) {
                            if (allowed.get(leaf.docBase + document)) {
                                with.set(document);
                                range.add(packed);
                            }
                            limit.checkNowAndThen();
                        }
                    });
            range.documents += with.cardinality();
        }
        out.writeLong(range.documents);
        out.writeLong(range.documents == 0 ? 0L : range.least);
        out.writeLong(range.documents == 0 ? 0L : range.greatest);
    }

    private static final class Range {
        long documents = 0;
        long least = Long.MAX_VALUE;
        long greatest = Long.MIN_VALUE;

        void add(byte[] packed) {
            long value = NumericUtils.sortableBytesToLong(packed, 0);
            least = Math.min(least, value);
            greatest = Math.max(greatest, value);
        }
    }

    /** A term by its number of documents; of equal ones, the later term is the lesser. */
    private static final class Frequent implements Comparable<Frequent> {
        final int documents;
        final long place;
        final BytesRef term;

        Frequent(int documents, long place, BytesRef term) {
            this.documents = documents;
            this.place = place;
            this.term = term;
        }

        @Override
        public int compareTo(Frequent other) {
            int order = Integer.compare(documents, other.documents);
            return order != 0 ? order : Long.compare(other.place, place);
        }
    }

    /** A collector of the matches of a query in a set. */
    private static final class Matches extends SimpleCollector {
        private final FixedBitSet set;
        private int docBase = 0;

        Matches(FixedBitSet set) {
            this.set = set;
        }

        @Override
        protected void doSetNextReader(LeafReaderContext leaf) {
            docBase = leaf.docBase;
        }

        @Override
        public void collect(int document) {
            set.set(docBase + document);
        }

        @Override
        public ScoreMode scoreMode() {
            return ScoreMode.COMPLETE_NO_SCORES;
        }
    }
}
