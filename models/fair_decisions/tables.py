"""Small tables that papers print or study."""

from __future__ import annotations

__all__ = ["INDIA_1971"]

INDIA_1971 = {
    "Andhra Pradesh": 43503,
    "Arunachal Pradesh": 468,
    "Assam": 14625,
    "Bihar": 42126,
    "Chhattisgarh": 11637,
    "Goa": 795,
    "Gujarat": 26697,
    "Haryana": 10036,
    "Himachal Pradesh": 3460,
    "Jammu & Kashmir": 4617,
    "Jharkhand": 14227,
    "Karnataka": 29299,
    "Kerala": 21347,
    "Madhya Pradesh": 30017,
    "Maharashtra": 50412,
    "Manipur": 1073,
    "Meghalaya": 1012,
    "Mizoram": 332,
    "Nagaland": 516,
    "Orissa": 21945,
    "Punjab": 13551,
    "Rajasthan": 25766,
    "Sikkim": 210,
    "Tamil Nadu": 41199,
    "Tripura": 1556,
    "Uttaranchal": 4493,
    "Uttar Pradesh": 83849,
    "West Bengal": 44312,
    "Andaman & Nicobar": 115,
    "Chandigarh": 257,
    "Dadra & Nagar Haveli": 74,
    "Daman & Diu": 63,
    "Delhi": 4066,
    "Lakshadweep": 32,
    "Pondicherry": 472,
}
"""Thousands of people in India's states and territories (boundaries of 2001) at the census of 1971, which
apportions the 543 seats of the Lok Sabha; after the Economic Survey."""
