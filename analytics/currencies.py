"""The currencies of ISO 4217 that are in use, and how many decimals their coins have."""

from __future__ import annotations

from decimal import Decimal

_CENTS = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL
HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP
MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS
VED VES WST XCD XCG YER ZAR ZMW ZWG
"""
_WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
_DECIMALS = {
    code: decimals
    for decimals, codes in ((2, _CENTS), (0, _WHOLE), (3, _THOUSANDTHS))
    for code in codes.split()
}


def is_currency(code: str) -> bool:
    """Whether ``code`` is an ISO 4217 code in use, in capitals."""
    return code in _DECIMALS


def smallest(code: str) -> Decimal:
    """The smallest coin: 0.01 for USD, 1 for KRW, 0.001 for KWD."""
    return Decimal(1).scaleb(-_DECIMALS.get(code, 2))
