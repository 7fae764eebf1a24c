package arag;

import java.io.IOException;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.FieldComparator;
import org.apache.lucene.search.FieldComparatorSource;
import org.apache.lucene.search.LeafFieldComparator;
import org.apache.lucene.search.Pruning;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.comparators.LongComparator;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.NumericUtils;
import org.apache.lucene.util.packed.PackedInts;
import org.apache.lucene.util.packed.PagedGrowableWriter;

/**
 * One value per document of a metadata field, for sorting and grouping. The index stores only terms
 * and points, so the values are computed from these when they are first needed: the time is linear
 * in the number of values, the space is at most 8 bytes per document, and fewer if the values are
 * small. They are kept until memory is short. Thread-safe.
 */
final class Columns {
    private static final int PAGE = 1024;

    private final DirectoryReader reader;
    private final Limit limit;
    private final Map<String, SoftReference<Column>> columns = new HashMap<>();

    Columns(DirectoryReader reader, Limit limit) {
        this.reader = reader;
        this.limit = limit;
    }

    /**
     * Return the column of a sort: a letter for the type, k(eyword) or p(oint), then + or - for
     * ascending or descending, then the field. The order of its numbers is that of the sort: they
     * are the least values ascending, or the complements of the greatest values descending.
     */
    Column ofSort(String sort) throws IOException {
        return get(sort);
    }

    /** Return the column that holds the same number for all documents with the same term. */
    Column ofGroups(String field) throws IOException {
        return get("g " + field);
    }

    private synchronized Column get(String key) throws IOException {
        SoftReference<Column> held = columns.get(key);
        Column column = held == null ? null : held.get();
        if (column == null) {
            column = new Column(reader.maxDoc());
            String field = key.substring(2);
            boolean descending = key.charAt(1) == '-';
            if (key.charAt(0) == 'p') {
                readPoints(column, field, descending);
            } else {
                readTerms(column, field, key.charAt(0) == 'g', descending);
            }
            columns.put(key, new SoftReference<>(column));
        }
        return column;
    }

    /**
     * Number the documents by their terms: by the place of the term, or in groups by the first
     * document of the term, which takes fewer bits where documents of a group are neighbours.
     */
    private void readTerms(Column column, String field, boolean groups, boolean descending)
            throws IOException {
        Terms terms = MultiTerms.getTerms(reader, field);
        if (terms == null) {
            return;
        }
        TermsEnum iterator = terms.iterator();
        PostingsEnum postings = null;
        long place = 0;
        while (iterator.next() != null) {
            postings = iterator.postings(postings, PostingsEnum.NONE);
            long number = place++;
            int document = postings.nextDoc();
            if (groups && document != DocIdSetIterator.NO_MORE_DOCS) {
                number = document;
            }
            for (; document != DocIdSetIterator.NO_MORE_DOCS; document = postings.nextDoc()) {
                column.offer(document, descending ? -number : number);
                limit.checkNowAndThen();
            }
        }
    }

    private void readPoints(Column column, String field, boolean descending) throws IOException {
        for (LeafReaderContext leaf : reader.leaves()) {
            PointValues points = leaf.reader().getPointValues(field);
            if (points != null) {
                points.intersect(
                        new AllPoints() {
                            @Override
                            public void visit(int document, byte[] packed) {
                                long number = NumericUtils.sortableBytesToLong(packed, 0);
                                int at = leaf.docBase + document;
                                column.offer(at, descending ? ~number : number);
                                limit.checkNowAndThen();
                            }
                        });
            }
        }
    }

    /** A visitor of every point of a segment. */
    abstract static class AllPoints implements PointValues.IntersectVisitor {
        @Override
        public void visit(int document) {
            throw new AssertionError("points are visited with their values");
        }

        @Override
        public PointValues.Relation compare(byte[] least, byte[] greatest) {
            return PointValues.Relation.CELL_CROSSES_QUERY;
        }
    }

    /** The numbers of documents, by their numbers in the whole index. */
    static final class Column {
        /** The number of a document without a value, which comes last. */
        static final long NONE = Long.MAX_VALUE;

        private final FixedBitSet has;
        private final PagedGrowableWriter numbers;

        Column(int documents) {
            has = new FixedBitSet(Math.max(1, documents));
            numbers = new PagedGrowableWriter(documents, PAGE, 1, PackedInts.COMPACT);
        }

        /** Keep the least number of a document. */
        void offer(int document, long number) {
            if (!has.getAndSet(document) || number < numbers.get(document)) {
                numbers.set(document, number);
            }
        }

        long get(int document) {
            return has.get(document) ? numbers.get(document) : NONE;
        }

        /** Return the numbers of the documents of a segment. */
        NumericDocValues in(LeafReaderContext leaf) {
            return new NumericDocValues() {
                private int document = -1;

                @Override
                public long longValue() {
                    return numbers.get(leaf.docBase + document);
                }

                @Override
                public boolean advanceExact(int target) {
                    document = target;
                    return has.get(leaf.docBase + target);
                }

                @Override
                public int docID() {
                    return document;
                }

                @Override
                public int nextDoc() {
                    return advance(document + 1);
                }

                @Override
                public int advance(int target) {
                    int end = leaf.docBase + leaf.reader().maxDoc();
                    int from = leaf.docBase + target;
                    int next = from < end ? has.nextSetBit(from, end) : NO_MORE_DOCS;
                    document = next == NO_MORE_DOCS ? NO_MORE_DOCS : next - leaf.docBase;
                    return document;
                }

                @Override
                public long cost() {
                    return leaf.reader().maxDoc();
                }
            };
        }

        /** Return a part of a sort: ascending numbers, documents without one last. */
        SortField sortField() {
            return new SortField(
                    "column",
                    new FieldComparatorSource() {
                        @Override
                        public FieldComparator<?> newComparator(
                                String field, int hits, Pruning pruning, boolean reversed) {
                            return comparator(field, hits);
                        }
                    });
        }

        private FieldComparator<?> comparator(String field, int hits) {
            return new LongComparator(hits, field, NONE, false, Pruning.NONE) {
                @Override
                public LeafFieldComparator getLeafComparator(LeafReaderContext leaf)
                        throws IOException {
                    return new LongLeafComparator(leaf) {
                        @Override
                        protected NumericDocValues getNumericDocValues(
                                LeafReaderContext context, String name) {
                            return in(context);
                        }
                    };
                }
            };
        }
    }
}
