package arag;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiDocValues;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SortedNumericDocValues;
import org.apache.lucene.index.SortedSetDocValues;
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
 * The values of fields in the documents that match a query, exactly. They are read from terms, doc
 * values and norms. The space is a bit for each document. The time is linear in the number
 *
 * <ul>
 *   <li>of distinct values, without a query and deletions;
 *   <li>of the values of the documents that match, if these are few;
 *   <li>of the values of all documents, otherwise.
 * </ul>
 */
final class Fields {
    private final IndexReader reader;
    private final Limit limit;
    private final FixedBitSet allowed;
    private final DataOutputStream out;

    /** Read the values in the documents that match a query; null stands for all documents. */
    Fields(IndexSearcher searcher, Limit limit, Query query, ByteArrayOutputStream out)
            throws IOException {
        this.reader = searcher.getIndexReader();
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
        if (allowed == null) {
            documents = reader.getDocCount(field);
        } else {
            NumericDocValues norms = MultiDocValues.getNormValues(reader, field);
            while (norms != null && norms.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
                // The norm of a text without a word is 0.
                if (allowed.get(norms.docID()) && norms.longValue() != 0L) {
                    documents++;
                }
            }
        }
        out.writeLong(documents);
    }

    /**
     * Write the number of documents with a term, the number of distinct terms, and the most frequent
     * terms: their number, then the documents, the length and the bytes of each.
     */
    void writeTerms(String field, int most) throws IOException {
        Most frequent = new Most(most);
        long documents = allowed != null && isSparse() ? ofFew(field, frequent) : -1;
        if (documents < 0) {
            documents = ofMany(field, frequent);
        }
        out.writeLong(documents);
        frequent.write(out);
    }

    /** Return whether reading the values of each document is faster than reading all terms. */
    private boolean isSparse() {
        return 4L * allowed.cardinality() < reader.maxDoc();
    }

    /** Count the terms of each document; return -1 if documents do not have them in a column. */
    private long ofFew(String field, Most frequent) throws IOException {
        TreeMap<BytesRef, Integer> counts = new TreeMap<>();
        long documents = 0;
        for (LeafReaderContext leaf : reader.leaves()) {
            SortedSetDocValues values = leaf.reader().getSortedSetDocValues(field);
            if (values == null) {
                return -1;
            }
            Map<Long, Integer> ofLeaf = new HashMap<>();
            int end = leaf.docBase + leaf.reader().maxDoc();
            int next = leaf.docBase < allowed.length() ? allowed.nextSetBit(leaf.docBase) : end;
            while (next < end) {
                limit.shouldExit();
                if (values.advanceExact(next - leaf.docBase)) {
                    documents++;
                    for (int left = values.docValueCount(); left > 0; left--) {
                        ofLeaf.merge(values.nextOrd(), 1, Integer::sum);
                    }
                }
                next = next + 1 < allowed.length() ? allowed.nextSetBit(next + 1) : end;
            }
            for (Map.Entry<Long, Integer> term : ofLeaf.entrySet()) {
                BytesRef value = BytesRef.deepCopyOf(values.lookupOrd(term.getKey()));
                counts.merge(value, term.getValue(), Integer::sum);
            }
        }
        counts.forEach((term, count) -> frequent.add(count, term));
        return documents;
    }

    private long ofMany(String field, Most frequent) throws IOException {
        FixedBitSet with = allowed == null ? null : new FixedBitSet(allowed.length());
        Terms terms = MultiTerms.getTerms(reader, field);
        TermsEnum iterator = terms == null ? TermsEnum.EMPTY : terms.iterator();
        PostingsEnum postings = null;
        for (BytesRef term = iterator.next(); term != null; term = iterator.next()) {
            int documents = iterator.docFreq();
            if (allowed != null) {
                limit.shouldExit();
                postings = iterator.postings(postings, PostingsEnum.NONE);
                documents = count(postings, with);
            }
            if (documents > 0) {
                frequent.add(documents, term);
            }
        }
        return with == null ? reader.getDocCount(field) : with.cardinality();
    }

    private int count(PostingsEnum postings, FixedBitSet with) throws IOException {
        int documents = 0;
        while (postings.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
            if (allowed.get(postings.docID())) {
                documents++;
                with.set(postings.docID());
            }
        }
        return documents;
    }

    /**
     * Write the number of documents with a number, and the least and the greatest as sortable longs;
     * these are 0 if there is none.
     */
    void writeNumbers(String field) throws IOException {
        long documents = 0;
        long least = Long.MAX_VALUE;
        long greatest = Long.MIN_VALUE;
        if (allowed == null && PointValues.getDocCount(reader, field) > 0) {
            documents = PointValues.getDocCount(reader, field);
            least = NumericUtils.sortableBytesToLong(PointValues.getMinPackedValue(reader, field), 0);
            greatest =
                    NumericUtils.sortableBytesToLong(PointValues.getMaxPackedValue(reader, field), 0);
        } else if (allowed != null) {
            SortedNumericDocValues values = MultiDocValues.getSortedNumericValues(reader, field);
            while (values != null && values.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
                if (allowed.get(values.docID())) {
                    documents++;
                    for (int left = values.docValueCount(); left > 0; left--) {
                        long value = values.nextValue();
                        least = Math.min(least, value);
                        greatest = Math.max(greatest, value);
                    }
                }
            }
        }
        out.writeLong(documents);
        out.writeLong(documents == 0 ? 0L : least);
        out.writeLong(documents == 0 ? 0L : greatest);
    }

    /** The most frequent of terms, which are added in ascending order, and how many there were. */
    private static final class Most {
        private final int most;
        private final PriorityQueue<Frequent> frequent = new PriorityQueue<>();
        private long distinct = 0;

        Most(int most) {
            this.most = most;
        }

        void add(int documents, BytesRef term) {
            distinct++;
            // The earlier of two equal counts stays.
            if (frequent.size() < most) {
                frequent.add(new Frequent(documents, distinct, BytesRef.deepCopyOf(term)));
            } else if (most > 0 && documents > frequent.peek().documents()) {
                frequent.poll();
                frequent.add(new Frequent(documents, distinct, BytesRef.deepCopyOf(term)));
            }
        }

        void write(DataOutputStream out) throws IOException {
            out.writeLong(distinct);
            Frequent[] best = frequent.toArray(new Frequent[0]);
            Arrays.sort(best);
            out.writeInt(best.length);
            for (int at = best.length - 1; at >= 0; at--) {
                out.writeLong(best[at].documents());
                out.writeInt(best[at].term().length);
                out.write(best[at].term().bytes, best[at].term().offset, best[at].term().length);
            }
        }
    }

    /** A term by its number of documents; of equal ones, the later term is the lesser. */
    private record Frequent(int documents, long number, BytesRef term)
            implements Comparable<Frequent> {
        @Override
        public int compareTo(Frequent other) {
            int order = Integer.compare(documents, other.documents);
            return order != 0 ? order : Long.compare(other.number, number);
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
