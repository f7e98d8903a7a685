//! The three figures that stand in a result. Pure; units are the caller's.

/// The middle of the samples; the mean of the two middle ones when their
/// number is even. `None` where there is no sample.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[middle - 1], upper))
}

/// The smallest sample that at least 99 of 100 samples do not exceed (nearest
/// rank, so always a value that was seen). With fewer than 100 samples that is
/// the largest one.
#[must_use]
pub fn p99(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The median of `subject[i] / peer[i]`. The two of a pair ran right after each
/// other, so what slowed the machine at that moment cancels out. Pairs without
/// a partner or with a peer of zero are left out.
#[must_use]
pub fn pairwise_ratio(subject: &[f64], peer: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = subject
        .iter()
        .zip(peer)
        .filter(|(_, peer)| **peer != 0.0)
        .map(|(subject, peer)| subject / peer)
        .collect();
    median(&ratios)
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    }

    #[test]
    fn median_of_an_even_number_is_between_the_middle_ones() {
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), Some(3.0));
    }

    #[test]
    fn nothing_has_no_median_no_p99_and_no_ratio() {
        assert_eq!(median(&[]), None);
        assert_eq!(p99(&[]), None);
        assert_eq!(pairwise_ratio(&[], &[1.0]), None);
    }

    #[test]
    fn one_outlier_moves_the_p99_and_not_the_median() {
        let mut samples = vec![2.0; 20];
        samples[7] = 900.0;
        assert_eq!(median(&samples), Some(2.0));
        assert_eq!(p99(&samples), Some(900.0));
    }

    #[test]
    fn p99_takes_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(p99(&hundred), Some(99.0));
        let thousand: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(p99(&thousand), Some(990.0));
        assert_eq!(p99(&[3.0]), Some(3.0));
    }

    #[test]
    fn ratio_is_taken_pair_by_pair() {
        // The machine was ten times slower during the second pair; the ratio of
        // the medians would say 1.0, the pairs say 0.5.
        let subject = [1.0, 10.0, 2.0];
        let peer = [2.0, 20.0, 4.0];
        assert_eq!(pairwise_ratio(&subject, &peer), Some(0.5));
        let slow_peer_once = [2.0, 20.0, 400.0];
        assert_eq!(pairwise_ratio(&subject, &slow_peer_once), Some(0.5));
    }

    #[test]
    fn ratio_leaves_out_what_cannot_be_divided() {
        assert_eq!(pairwise_ratio(&[1.0, 3.0, 8.0], &[0.0, 1.0]), Some(3.0));
    }
}
