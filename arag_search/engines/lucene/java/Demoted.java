package arag;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.FilterLeafCollector;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.TwoPhaseIterator;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Bits;

/**
 * A query whose score is multiplied, for each of several other queries that match too, by a factor
 * below 1.
 *
 * <p>A factor below 1 leaves every maximum of the scores a maximum. So the query skips blocks of
 * documents as it would without the factors, and looks at the other queries only in documents whose
 * score would be high enough without them. The product of the factors is in 64 bits, and rounded
 * with the score, which is what a function_score of OpenSearch computes.
 */
final class Demoted extends Query {
    private final Query query;
    private final List<Query> lowering;
    private final float[] factors;

    Demoted(Query query, List<Query> lowering, float[] factors) {
        this.query = query;
        this.lowering = lowering;
        this.factors = factors;
    }

    /** Return the query without the factors, which matches the same documents. */
    Query query() {
        return query;
    }

    @Override
    public Query rewrite(IndexSearcher searcher) throws IOException {
        Query rewritten = query.rewrite(searcher);
        boolean changed = rewritten != query;
        List<Query> others = new ArrayList<>(lowering.size());
        for (Query other : lowering) {
            others.add(other.rewrite(searcher));
            changed |= others.get(others.size() - 1) != other;
        }
        return changed ? new Demoted(rewritten, others, factors) : super.rewrite(searcher);
    }

    @Override
    public Weight createWeight(IndexSearcher searcher, ScoreMode mode, float boost)
            throws IOException {
        Weight weight = query.createWeight(searcher, mode, boost);
        if (!mode.needsScores()) {
            return weight;
        }
        List<List<Weight>> weights = new ArrayList<>(lowering.size());
        for (Query other : lowering) {
            weights.add(alternatives(other, searcher));
        }
        return new LoweredWeight(this, weight, weights, factors);
    }

    /**
     * Return the weights of the alternatives of a query. They are asked in turn whether they match a
     * document, which for a few documents costs less than a disjunction, or a look into the cache of
     * the searcher.
     */
    private static List<Weight> alternatives(Query query, IndexSearcher searcher)
            throws IOException {
        Collection<Query> alternatives =
                query instanceof DisjunctionMaxQuery any ? any.getDisjuncts() : List.of(query);
        List<Weight> weights = new ArrayList<>(alternatives.size());
        for (Query alternative : alternatives) {
            weights.add(alternative.createWeight(searcher, ScoreMode.COMPLETE_NO_SCORES, 1f));
        }
        return weights;
    }

    @Override
    public void visit(QueryVisitor visitor) {
        query.visit(visitor);
        for (Query other : lowering) {
            other.visit(visitor);
        }
    }

    @Override
    public String toString(String field) {
        return "demoted(" + query.toString(field) + ", " + lowering + ")";
    }

    @Override
    public boolean equals(Object other) {
        return sameClassAs(other) && equalsTo((Demoted) other);
    }

    private boolean equalsTo(Demoted other) {
        return query.equals(other.query)
                && lowering.equals(other.lowering)
                && Arrays.equals(factors, other.factors);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * classHash() + query.hashCode()) + lowering.hashCode();
    }

    private static final class LoweredWeight extends Weight {
        private final Weight weight;
        private final List<List<Weight>> lowering;
        private final float[] factors;

        LoweredWeight(
                Query query, Weight weight, List<List<Weight>> lowering, float[] factors) {
            super(query);
            this.weight = weight;
            this.lowering = lowering;
            this.factors = factors;
        }

        @Override
        public ScorerSupplier scorerSupplier(LeafReaderContext leaf) throws IOException {
            ScorerSupplier supplier = weight.scorerSupplier(leaf);
            return supplier == null
                    ? null
                    : new LoweredSupplier(supplier, new Factors(lowering, factors, leaf));
        }

        @Override
        public int count(LeafReaderContext leaf) throws IOException {
            return weight.count(leaf);
        }

        @Override
        public boolean isCacheable(LeafReaderContext leaf) {
            return weight.isCacheable(leaf);
        }

        @Override
        public Explanation explain(LeafReaderContext leaf, int document) throws IOException {
            Explanation explanation = weight.explain(leaf, document);
            if (!explanation.isMatch()) {
                return explanation;
            }
            double factor = new Factors(lowering, factors, leaf).at(document);
            float score = (float) (explanation.getValue().doubleValue() * factor);
            return Explanation.match(score, "multiplied by " + factor, explanation);
        }
    }

    /** The factors of the documents of a segment, asked for in ascending order. */
    private static final class Factors {
        private final List<List<Weight>> lowering;
        private final float[] factors;
        private final LeafReaderContext leaf;
        private List<List<Candidates>> candidates;
        private int document = -1;
        private double product = 1;

        Factors(List<List<Weight>> lowering, float[] factors, LeafReaderContext leaf) {
            this.lowering = lowering;
            this.factors = factors;
            this.leaf = leaf;
        }

        /** Return the product of the factors of the queries that match a document. */
        double at(int wanted) throws IOException {
            if (candidates == null) {
                open();
            }
            if (wanted != document) {
                document = wanted;
                product = 1;
                for (int i = 0; i < factors.length; i++) {
                    product *= matches(i) ? factors[i] : 1;
                }
            }
            return product;
        }

        private void open() throws IOException {
            candidates = new ArrayList<>(lowering.size());
            for (List<Weight> weights : lowering) {
                List<Candidates> inLeaf = new ArrayList<>(weights.size());
                for (Weight weight : weights) {
                    Scorer scorer = weight.scorer(leaf);
                    if (scorer != null) {
                        inLeaf.add(Candidates.of(scorer));
                    }
                }
                candidates.add(inLeaf);
            }
        }

        private boolean matches(int i) throws IOException {
            for (Candidates alternative : candidates.get(i)) {
                if (alternative.match(document)) {
                    return true;
                }
            }
            return false;
        }
    }

    /** Documents that may match, and the check that they do, null if all of them do. */
    private record Candidates(DocIdSetIterator documents, TwoPhaseIterator check) {
        static Candidates of(Scorer scorer) {
            TwoPhaseIterator check = scorer.twoPhaseIterator();
            return new Candidates(check == null ? scorer.iterator() : check.approximation(), check);
        }

        boolean match(int document) throws IOException {
            int at = documents.docID();
            if (at < document) {
                at = documents.advance(document);
            }
            return at == document && (check == null || check.matches());
        }
    }

    private static final class LoweredSupplier extends ScorerSupplier {
        private final ScorerSupplier supplier;
        private final Factors factors;

        LoweredSupplier(ScorerSupplier supplier, Factors factors) {
            this.supplier = supplier;
            this.factors = factors;
        }

        @Override
        public Scorer get(long leadCost) throws IOException {
            return new LoweredScorer(supplier.get(leadCost), factors);
        }

        @Override
        public BulkScorer bulkScorer() throws IOException {
            BulkScorer scorer = supplier.bulkScorer();
            return scorer == null ? null : new LoweredBulkScorer(scorer, factors);
        }

        @Override
        public long cost() {
            return supplier.cost();
        }

        @Override
        public void setTopLevelScoringClause() throws IOException {
            supplier.setTopLevelScoringClause();
        }
    }

    /** A score that is lowered only if it matters whether it is. */
    private static final class Lowered {
        private final Factors factors;
        private float least = 0;

        Lowered(Factors factors) {
            this.factors = factors;
        }

        void setLeast(float score) {
            least = score;
        }

        /** A score below the least one that counts may stay as it is: it does not count. */
        float of(float score, int document) throws IOException {
            return score < least ? score : (float) (score * factors.at(document));
        }
    }

    private static final class LoweredScorer extends Scorer {
        private final Scorer scorer;
        private final Lowered lowered;

        LoweredScorer(Scorer scorer, Factors factors) {
            this.scorer = scorer;
            this.lowered = new Lowered(factors);
        }

        @Override
        public int docID() {
            return scorer.docID();
        }

        @Override
        public DocIdSetIterator iterator() {
            return scorer.iterator();
        }

        @Override
        public TwoPhaseIterator twoPhaseIterator() {
            return scorer.twoPhaseIterator();
        }

        @Override
        public float score() throws IOException {
            return lowered.of(scorer.score(), scorer.docID());
        }

        @Override
        public int advanceShallow(int target) throws IOException {
            return scorer.advanceShallow(target);
        }

        @Override
        public float getMaxScore(int upTo) throws IOException {
            return scorer.getMaxScore(upTo);
        }

        @Override
        public void setMinCompetitiveScore(float least) throws IOException {
            lowered.setLeast(least);
            scorer.setMinCompetitiveScore(least);
        }
    }

    private static final class LoweredBulkScorer extends BulkScorer {
        private final BulkScorer scorer;
        private final Factors factors;

        LoweredBulkScorer(BulkScorer scorer, Factors factors) {
            this.scorer = scorer;
            this.factors = factors;
        }

        @Override
        public int score(LeafCollector collector, Bits live, int first, int end)
                throws IOException {
            return scorer.score(new LoweredCollector(collector, factors), live, first, end);
        }

        @Override
        public long cost() {
            return scorer.cost();
        }
    }

    private static final class LoweredCollector extends FilterLeafCollector {
        private final Lowered lowered;
        private int document;

        LoweredCollector(LeafCollector collector, Factors factors) {
            super(collector);
            this.lowered = new Lowered(factors);
        }

        @Override
        public void setScorer(Scorable scorer) throws IOException {
            in.setScorer(
                    new Scorable() {
                        @Override
                        public float score() throws IOException {
                            return lowered.of(scorer.score(), document);
                        }

                        @Override
                        public void setMinCompetitiveScore(float least) throws IOException {
                            lowered.setLeast(least);
                            scorer.setMinCompetitiveScore(least);
                        }
                    });
        }

        @Override
        public void collect(int document) throws IOException {
            this.document = document;
            in.collect(document);
        }

        @Override
        public DocIdSetIterator competitiveIterator() throws IOException {
            return in.competitiveIterator();
        }
    }
}
