/// A run of decoded audio: one plane of samples per channel, of equal length. 1.0 is full scale.
///
/// A plain value.
package struct PCM: Sendable, Equatable {
    /// Hz.
    package var sampleRate: Int
    package var planes: [[Float]]

    package init(sampleRate: Int, planes: [[Float]]) {
        self.sampleRate = sampleRate
        self.planes = planes
    }

    package init(silence count: Int, sampleRate: Int, channels: Int) {
        self.init(sampleRate: sampleRate, planes: Array(repeating: Array(repeating: 0, count: count), count: channels))
    }

    package var channels: Int { self.planes.count }
    /// Samples per channel.
    package var count: Int { self.planes.first?.count ?? 0 }

    /// Drops samples from the front.
    mutating func dropFirst(_ count: Int) {
        for index in self.planes.indices { self.planes[index].removeFirst(min(count, self.planes[index].count)) }
    }

    /// Duplicates one channel to two, or averages two to one. Sound common to both keeps its level.
    func mixed(to channels: Int) -> PCM {
        switch (self.channels, channels) {
        case (1, 2): return PCM(sampleRate: self.sampleRate, planes: [self.planes[0], self.planes[0]])
        case (2, 1): return PCM(sampleRate: self.sampleRate, planes: [zip(self.planes[0], self.planes[1]).map { ($0 + $1) / 2 }])
        default: return self
        }
    }
}
