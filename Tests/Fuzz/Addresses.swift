import Support

extension FuzzTarget {
    /// Networks, hosts with ports, and percent-encoding, as settings and requests have them. Written and read again they are the same.
    static let addresses = FuzzTarget("addresses", maxLength: 256) { input in
        let text = String(decoding: input.rest, as: UTF8.self)
        do throws(ValueProblem) {
            let network = try CIDR(parsing: text)
            expect(try CIDR(parsing: network.description).description == network.description, "another network than \(network)")
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
        do throws(ValueProblem) {
            let address = try HostPort(parsing: text)
            expect((0...65_535).contains(address.port) && !address.host.isEmpty, "\(address)")
            expect(try HostPort(parsing: address.description) == address, "another address than \(address)")
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
        expect(PercentCoding.decode(PercentCoding.encode(text).utf8) == text, "encoded and decoded, another text")
        if let plain = PercentCoding.decode(input.rest) {
            expect(PercentCoding.decode(PercentCoding.encode(plain).utf8) == plain, "decoded, encoded and decoded, another text")
        }
    }
}
